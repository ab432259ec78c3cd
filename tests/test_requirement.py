"""What a project asks for of torch is read from its lists of dependencies, and a fix that needs more is not safe."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.files.requirement import torch_requirement
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

REQUIREMENTS = {
    "pinned": ("numpy\ntorch==1.9.0\n", (1, 9, 0)),
    "a range": ("torch>=1.6,<2  # torch==1.2\n", (1, 6)),
    "compatible": ("torch~=2.1\n", (2, 1)),
    "a build for CUDA": ("torch == 1.13.1+cu116\n", (1, 13, 1)),
    "a dot is missing behind two digits": ("torch==1.101\n", (1, 10, 1)),
    "a release that never was": ("torch==0.9\n", (0, 9)),
    "a series that goes on": ("torch==2.31\n", (2, 31)),
    "any torch": ("torch\nlightning==1.9\n", None),
    "no oldest": ("torch<2\n", None),
    "another package": ("pytorch-lightning==1.9\nmy-torch==1.0\n", None),
    "a comment": ("# torch==1.0\n", None),
    "torchvision of 2020": ("torch\ntorchvision==0.5.0\n", (1, 4)),
    "torchvision of 2019": ("torchvision>=0.3\n", (1, 1)),
    "the last torchvision of torch 1": ("torchvision==0.14.1\n", (1, 13)),
    "the first torchvision of torch 2": ("torchvision==0.15.2+cu118\n", (2, 0)),
    "torchvision of any torch": ("torchvision==0.2.1\n", None),
    "torchaudio": ("torchaudio==0.9.0\n", (1, 9)),
    "torchaudio of torch 2": ("torchaudio==2.1.0\n", (2, 1)),
    "torch is believed before": ("torchvision==0.5.0\ntorch>=1.6\n", (1, 6)),
}
OTHER_LISTS = {
    "setup.py": ("setup.py", "setup(install_requires=['numpy', 'torch>=1.6'])\n", (1, 6)),
    "pyproject.toml": ("pyproject.toml", '[project]\ndependencies = ["torch[opt]>=2.2"]\n', (2, 2)),
    "a date of uv": ("pyproject.toml", '[tool.uv]\nexclude-newer-package = { torch = "2099-01-01" }\n', None),
    "Poetry": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^1.10"\n', (1, 10)),
    "conda": ("environment.yml", "dependencies:\n  - pytorch=1.7.1\n", (1, 7, 1)),
    "Cog": ("cog.yaml", "build:\n  python_packages:\n    - 'torch==1.11.0'\n", (1, 11, 0)),
    "an environment of another name": ("environment_gpu.yml", "dependencies:\n  - pytorch=1.7.1\n", (1, 7, 1)),
    "CUDA in a list": ("env.yml", "dependencies:\n  - pytorch\n  - cudatoolkit=10.2\n", (1, 12)),
    "an image": ("Dockerfile", "FROM pytorch/pytorch:1.4-cuda10.1-cudnn7-devel\n", (1, 4)),
    "a version in a variable": ("Dockerfile", 'ARG PYTORCH="1.6.0"\nFROM pytorch/pytorch:${PYTORCH}\n', (1, 6, 0)),
    "a script": ("install.sh", "# pip install torch==1.1\npip install torch==1.9.0+cu111\n", (1, 9, 0)),
    "that channel in a list": ("environment.yml", "channels:\n  - pytorch-lts\n", (1, 8, 2)),
}
READMES = {
    "a README": ("* Python 3.7\n* PyTorch 1.3\n", (1, 3)),
    "a README in words": ("Runs with **pytorch** version >= 1.7.1.\n", (1, 7, 1)),
    "a README without a space": ("Pytorch0.4.1 codes\n", (0, 4, 1)),
    "a README with a link": ("* [Pytorch](https://pytorch.org) >= 1.2.0\n", (1, 2, 0)),
    "a README in bold type": ("* Pytorch: **0.4.0**\n* PyTorch 1.0\n", (0, 4, 0)),
    "a README in brackets": ("Needs PyTorch (>=1.6).\n", (1, 6)),
    "a number within a link": ("See [PyTorch](https://pytorch.org/1.2.html).\n", None),
    "no dot": ("1. [torch 1.81](https://github.com/pytorch/pytorch)\n", (1, 8, 1)),
    "a badge": (
        "[![PyTorch](https://img.shields.io/badge/pytorch-1.8-%237732a8?logo=PyTorch)](https://pytorch.org)\n",
        (1, 8),
    ),
    "at least": ("![](https://img.shields.io/badge/PyTorch-%3E%3D1.7-red)\n", (1, 7)),
    "another address": ("See github.com/me/pytorch-1.8-notes.\n", None),
    "a README on another package": ("Needs pytorch-lightning 1.9 and PyTorch.\n", None),
    "torchvision in a README": ("* torchvision 0.9\n", (1, 8)),
    "at least, in one sign": ("* Python ≥ 3.6\n* PyTorch ≥ 1.4\n", (1, 4)),
    "installed": ("* PyTorch install 1.7.1\n", (1, 7, 1)),
    "tested": ("PyTorch (tested with 1.2)\n", (1, 2)),
    "words of other names": ("PyTorch Lightning 1.9 and torch with Python 3.6\n", None),
    "the first channel": ("conda install pytorch torchvision cuda80 -c soumith\n", (0, 3)),
    "the channel of the long-term release": (
        "* `conda install pytorch torchvision cudatoolkit=10.2 -c pytorch-lts`\n",
        (1, 8, 2),
    ),
    "an image of NVIDIA": ("docker run nvcr.io/nvidia/pytorch:19.05-py3\n", (1, 0)),
    "that image in words": ("We use the NVIDIA container 20.03.\n", (1, 4)),
    "and its version": ("* NVIDIA PyTorch container, version 19.05\n", (1, 0)),
    "its notes": ("[image](https://x.com/pytorch-release-notes/rel_19-05.html)\n", (1, 0)),
    "a system of the same age": ("A PyTorch image on Ubuntu 18.04\n", None),
    "an image of PyTorch": ("docker pull pytorch/pytorch:1.4-cuda10.1\n", (1, 4)),
    "a CUDA that later releases are not built for": (
        "```\nconda install pytorch torchvision cudatoolkit=10.0 -c pytorch\n```\n",
        (1, 4),
    ),
    "faiss": ("conda install faiss-gpu cudatoolkit=10.0 -c pytorch\n", None),
    "the last CUDA of cudatoolkit": ("conda install pytorch torchvision cudatoolkit=11.3 -c pytorch -y\n", (1, 12)),
    "an index of builds": ("pip install torch --extra-index-url https://download.pytorch.org/whl/cu113\n", (1, 12)),
    "a later index": ("pip install torch --index-url https://download.pytorch.org/whl/cu121\n", None),
    "a wheel": (
        "pip install https://download.pytorch.org/whl/cu92/torch-1.2.0-cp36-cp36m-linux_x86_64.whl\n",
        (1, 2, 0),
    ),
    "a later CUDA": ("conda install pytorch cudatoolkit=11.8 -c pytorch\n", None),
}
LISTS = {
    **OTHER_LISTS,
    **{case: ("requirements.txt", *row) for case, row in REQUIREMENTS.items()},
    **{case: ("README.md", *row) for case, row in READMES.items()},
}
SCALED = "import torch\nscaler = torch.cuda.amp.GradScaler()\n"


@pytest.mark.parametrize(("name", "text", "oldest"), LISTS.values(), ids=LISTS)
def test_the_oldest_torch_that_is_asked_for(tmp_path: Path, name: str, text: str, oldest: object) -> None:
    (tmp_path / name).write_text(text)
    found = torch_requirement(tmp_path)
    assert (found and found.oldest) == oldest


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "torch==1.9.0"),
        ("failsafe_requirements.txt", "torch==1.9.0"),
        ("README.md", "PyTorch 1.9.0"),
    ],
)
def test_a_fix_that_needs_a_newer_torch_than_is_asked_for_is_only_shown(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "package").mkdir()
    file = tmp_path / "package" / "a.py"
    file.write_text(SCALED)
    fix = lint(Source.read(file), Settings.selecting("AMP01"), project=Project())[0].fix
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY
    assert fix.why == f"The old name calls the new one; it needs torch 2.4, and {name} asks for `{text}`"


@pytest.mark.parametrize(("asked", "applicability"), [("0.4.0", Applicability.DISPLAY), ("1.0", Applicability.UNSAFE)])
def test_a_decorator_needs_a_newer_torch_than_a_with_block(
    tmp_path: Path, asked: str, applicability: Applicability
) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch=={asked}\n")
    file = tmp_path / "a.py"
    file.write_text(
        "import torch\n"
        "def evaluate(model: torch.nn.Module, loader):\n"
        "    model.eval()\n"
        "    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)\n"
    )
    fix = lint(Source.read(file), Settings.selecting("MEM05"), project=Project())[0].fix
    assert fix is not None
    assert "@torch.no_grad()" in fix.edits[0].text
    assert fix.applicability is applicability


def test_a_list_of_a_name_of_its_own_is_asked_after_the_usual_ones(tmp_path: Path) -> None:
    (tmp_path / "old_requirements.txt").write_text("torch==1.7.1\n")
    (tmp_path / "requirements.txt").write_text("torch\n")
    found = torch_requirement(tmp_path)
    assert found is not None
    assert (found.oldest, found.file) == ((1, 7, 1), "old_requirements.txt")
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    found = torch_requirement(tmp_path)
    assert found is not None
    assert found.oldest == (2, 4)


def test_a_list_is_believed_before_a_readme(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("PyTorch 1.3\n")
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    found = torch_requirement(tmp_path)
    assert found is not None
    assert found.oldest == (2, 4)


@pytest.mark.parametrize(("text", "target"), [("torch>=2.4\n", None), ("torch==1.9.0\n", "2.4"), ("numpy\n", None)])
def test_a_fix_for_the_torch_that_is_asked_for_stays_safe(tmp_path: Path, text: str, target: str | None) -> None:
    (tmp_path / "requirements.txt").write_text(text)
    file = tmp_path / "a.py"
    file.write_text(SCALED)
    settings = Settings(target_torch=target)
    (found,) = (finding for finding in lint(Source.read(file), settings, project=Project()) if finding.code == "AMP01")
    assert found.fix is not None
    assert found.fix.applicability is Applicability.SAFE


INSTALLED = {
    "a Dockerfile": ("docker/gpu/Dockerfile", "RUN pip install torch==1.7.1\n", "torch==1.7.1"),
    "a guide": ("docs/INSTALL.md", "`conda install pytorch=1.4 -c pytorch`\n", "pytorch=1.4"),
    "what another guide talks of": ("docs/INSTALL.md", "This was written when PyTorch 1.4 came out.\n", None),
    "an entry of the list of a guide": (
        "docs/GETTING_STARTED.md",
        "* PyTorch 1.11+ (see its page)\n",
        "* PyTorch 1.11",
    ),
    "an entry of another kind": ("docs/GETTING_STARTED.md", "* the PyTorch 1.11 release notes\n", None),
    "a guide beside code of its own": ("third_party/README.md", "`pip install torch==1.4`\n", None),
    "another program": ("tools/old.py", "x = iter(loader).next()\n", "iter(loader).next()"),
    "another program for Python 3.6": ("tools/old.py", "x = x.cuda(0, async=True)\n", ".cuda(0, async=True"),
    "any torch": ("docker/Dockerfile", "RUN pip install torch\n", None),
    "something large": ("scripts/all.sh", "pip install torch==1.4\n" + 10_000 * "echo something more or less\n", None),
}


@pytest.mark.parametrize(("name", "text", "asked"), INSTALLED.values(), ids=INSTALLED)
def test_what_installs_a_project_counts_where_no_list_says_anything(
    tmp_path: Path, name: str, text: str, asked: str | None
) -> None:
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "third_party").mkdir()
    (tmp_path / "third_party" / "b.py").write_text("")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert why_in(tmp_path, SCALED) == (SHOWN.format(f"{name} asks for `{asked}`") if asked else FREE)
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    assert why_in(tmp_path, SCALED) == FREE


CODE = {
    "an iterator of a loader": ("batches = iter(loader)\nx = batches.next()\n", "batches.next()", "1.12"),
    "an iterator that has no name": ("x = iter(loader).next()\n", "iter(loader).next()", "1.12"),
    "Python 2": ("for i in xrange(3):\n    pass\n", "xrange(", "1.4"),
    "a function of autograd that is called as an instance": (
        "from torch.autograd import Function\nclass Top(Function):\n    def __init__(self, k):\n        self.k = k\n\n"
        "    def forward(self, x):\n        return x[: self.k]\n",
        "class Top(Function)",
        "1.4",
    ),
    "a function of autograd": (
        "from torch.autograd import Function\nclass Top(Function):\n    @staticmethod\n    def forward(self, x):\n"
        "        return x\n\nclass Net:\n    def forward(self, x):\n        return Top.apply(x)\n",
        None,
        None,
    ),
    "a function of something else": ("class Top(Function):\n    def forward(self, x):\n        return x\n", None, None),
    "the extensions of torch 0.4": (
        "from torch.utils.ffi import create_extension\n",
        "from torch.utils.ffi import",
        "0.4.1",
    ),
    "the first element of a loss": ("print(policy_loss.data[0])\n", "policy_loss.data[0]", "0.4.1"),
    "the number in a value": ("value = value.data.squeeze()[0]\n", "value.data.squeeze()[0]", "0.4.1"),
    "a row of what is squeezed": ("row = x.data.squeeze()[0].tolist()\n", None, None),
    "the first of several losses": ("print(losses.data[0])\n", None, None),
    "an iterator of the project": ("class A:\n    def next(self): ...\nb = iter(A())\nb.next()\n", None, None),
    "something else with that method": ("pool.next()\nb = iter(loader)\nnext(b)\n", None, None),
    "a comment": ("# x = iter(loader).next()\n", None, None),
    "both Pythons": ("from six.moves import xrange\nfor i in xrange(3):\n    pass\n", None, None),
}


@pytest.mark.parametrize(("code", "words", "newest"), CODE.values(), ids=CODE)
def test_a_program_may_say_by_itself_that_it_is_for_an_older_torch(
    tmp_path: Path, code: str, words: str | None, newest: str | None
) -> None:
    (tmp_path / "setup.py").write_text("")
    said = f"`{words}` runs with none newer than {newest}"
    assert why_in(tmp_path, SCALED + code) == (SHOWN.format(said) if words else FREE)


FREE = "The old name calls the new one."
SHOWN = "The old name calls the new one; it needs torch 2.4, and {}"


def why_in(folder: Path, code: str) -> str:
    file = folder / "a.py"
    file.write_text(code)
    fix = lint(Source.read(file), Settings.selecting("AMP01"), project=Project())[0].fix
    assert fix is not None
    assert (fix.applicability is Applicability.DISPLAY) is (";" in fix.why)
    return fix.why
