"""Programs that nobody would choose to verify, and what `verify` makes of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest
from torchlint.runtime_check import Options, Overall, Verdict, verify_trees
from torchlint.runtime_check.equivalence import Sameness
from torchlint.runtime_check.report import lines

pytestmark = pytest.mark.usefixtures("forked")

FEW = Options(steps=4, warmup=1, blocks=0, timeout=120.0)

AWKWARD = """
    import os
    import shutil
    import sys

    import torch
    import names

    sys.stdout.buffer.write(bytes(range(256)) + b"\\n")
    weight = torch.nn.Parameter(torch.arange(3.0))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    os.makedirs("scratch/inner", exist_ok=True)
    os.remove(__file__)
    os.remove("names.py")
    shutil.rmtree("data")
    os.chdir("scratch/inner")
    open("made.txt", "w").write("made")
    losses = []
    child = os.fork()
    for step in range(3 if child else 2):
        loss = weight.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    if not child:
        os._exit(7)
    os.waitpid(child, 0)
    print("sum", float(sum(losses)))
"""
NOISY = """
    import torch

    torch.seed()
    weight = torch.nn.Parameter(torch.randn(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    losses = []
    for step in range(4):
        loss = (weight + torch.randn(3)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
"""
DETACHED = ("append(loss)", "append(loss.detach())")


class Checked(NamedTuple):
    verdict: Verdict
    files: dict[str, bytes]

    @property
    def text(self) -> str:
        return "\n".join(line.plain for line in lines(self.verdict))


def check(root: Path, code: str, change: tuple[str, str], options: Options = FEW, name: str = "train.py") -> Checked:
    (root / "train.py").write_text(dedent(code))
    before = (root / name).read_text()
    assert change[0] in before
    command = [sys.executable, "train.py"]
    verdict = verify_trees(root, {Path(name): before.replace(*change)}, command, options)
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return Checked(verdict, files)


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    root = tmp_path_factory.mktemp("project")
    (root / "data").mkdir()
    (root / "data" / "large.bin").write_bytes(b"x" * 100_000)
    (root / "names.py").write_text("names = []\n")
    return check(root, AWKWARD, DETACHED)


def test_a_program_that_forks_is_judged_by_the_process_that_trained_most(awkward: Checked) -> None:
    assert awkward.verdict.equivalence is not None, awkward.verdict
    assert awkward.verdict.equivalence.verdict is Sameness.IDENTICAL
    assert awkward.verdict.equivalence.losses == 3
    assert awkward.verdict.overall is Overall.ACCEPT


def test_a_program_that_deletes_its_files_deletes_those_of_its_copy(awkward: Checked) -> None:
    assert set(awkward.files) == {"train.py", "names.py", "data/large.bin"}
    assert awkward.files["data/large.bin"] == b"x" * 100_000


def test_a_program_that_changes_its_folder_is_compared_by_what_it_writes_there(awkward: Checked) -> None:
    assert awkward.verdict.equivalence is not None
    assert awkward.verdict.equivalence.files == ()
    assert awkward.verdict.target.unused == ()


def test_binary_output_is_no_obstacle(awkward: Checked) -> None:
    assert awkward.verdict.equivalence is not None
    assert awkward.verdict.equivalence.printed is None
    assert "identical" in awkward.text
    assert json.loads(awkward.verdict.to_json())["overall"] == "accept"


def test_binary_output_of_a_program_that_fails_is_shown_as_text(tmp_path: Path) -> None:
    code = "import sys\nsys.stderr.buffer.write(bytes(range(256)))\nsys.exit(3)\n"
    found = check(tmp_path, code, ("(3)", "(4)"))
    assert found.verdict.reasons == ("baseline does not run: exit code 3",)
    assert "\N{REPLACEMENT CHARACTER}" in found.verdict.log
    assert json.loads(found.verdict.to_json())["overall"] == "error"


def test_a_program_that_is_not_the_same_twice_is_not_called_different_for_it(tmp_path: Path) -> None:
    found = check(tmp_path, NOISY, DETACHED).verdict
    assert found.equivalence is not None
    assert not found.equivalence.deterministic_baseline
    assert found.equivalence.verdict is not Sameness.DIFFERENT


def test_a_program_that_needs_a_gpu_says_so_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = check(tmp_path, "import torch\ntorch.ones(1).cuda()\n", ("(1)", "(2)"))
    assert found.verdict.overall is Overall.ERROR
    assert "needs a GPU" in found.text


@pytest.mark.parametrize("broken", ["import no_such_module", "def ("], ids=["a missing module", "no syntax"])
def test_a_rewritten_tree_that_does_not_import_is_rejected(tmp_path: Path, broken: str) -> None:
    (tmp_path / "parts.py").write_text("SIZE = 3\n")
    code = "import torch\nimport parts\nprint(torch.ones(parts.SIZE).sum())\n"
    found = check(tmp_path, code, ("SIZE = 3", f"SIZE = 3\n{broken}"), name="parts.py").verdict
    assert found.overall is Overall.REJECT
    assert found.reasons == ("the rewritten program does not run: exit code 1",)
    assert "Error" in found.log
