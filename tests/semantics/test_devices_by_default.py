"""A device that a default names, where the programs in sight leave it out, where one names another, and where users of
the command line or of a library may."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.semantics.projects import model_of, write
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.semantics.values import Place
from torchlint.source import Source

TRAINING = """
    import torch

    def fit(model, loader, device={default}):  # cuda
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total = 0
        for x, y in loader:
            weight = torch.ones(3).to(device)
            loss = (model(x.to(device)) - y.to(device)).square().mean() * weight.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total
    """
CALLING = "from train import fit\n\nfit(model, loader{given})\n"
FOUND = {"XFER01", "SYNC01"}


def codes(folder: Path, name: str) -> set[str]:
    return {finding.code for finding in lint(Source.read(folder / name), project=Project())} & FOUND


@pytest.mark.parametrize("default", ["'cpu'", "torch.device('cpu')"])
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", set()),
        (", device='cpu'", set()),
        (", device='cuda'", FOUND),
        (", args.device", FOUND),
        (")\nfit(model, loader, device='cuda'", FOUND),
        (", **options", FOUND),
    ],
)
def test_callers_of_another_file_leave_the_device_at_its_default(
    tmp_path: Path, default: str, given: str, found: set[str]
) -> None:
    write(tmp_path, {"train.py": TRAINING.format(default=default), "main.py": CALLING.format(given=given)})
    assert codes(tmp_path, "train.py") == found


def test_a_function_that_nobody_in_sight_calls_may_get_any_device(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": TRAINING.format(default="'cpu'")})
    assert codes(tmp_path, "train.py") == FOUND


TEST = "import pytest\nfrom lib.train import fit\n\ndef test_fit():\n    assert fit(model, loader) == 0\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"tests/test_train.py": TEST}, FOUND),
        ({"examples/run.py": CALLING.replace("train", "lib.train")}, set()),
        ({"examples/run.py": CALLING.replace("train", "lib.train"), "setup.py": "setup()"}, set()),
        ({"examples/run.py": CALLING.replace("train", "lib"), "lib/__init__.py": "from .train import fit"}, set()),
        (
            {
                "examples/run.py": CALLING.replace("train", "lib"),
                "lib/__init__.py": "from .train import fit",
                "setup.py": "setup()",
            },
            FOUND,
        ),
        (
            {
                "examples/run.py": CALLING.replace("train", "lib"),
                "lib/__init__.py": "from .train import *",
                "pyproject.toml": "[project]",
            },
            FOUND,
        ),
    ],
)
def test_users_of_a_library_fill_in_what_its_tests_and_examples_leave_out(
    tmp_path: Path, files: dict[str, str], found: set[str]
) -> None:
    library = {"lib/__init__.py": "", "lib/train.py": TRAINING.format(default="'cpu'")}
    write(tmp_path, {**library, **{name: text.format(given="") for name, text in files.items()}})
    assert codes(tmp_path, "lib/train.py") == found


def test_a_project_file_that_cannot_be_read_says_of_no_library(tmp_path: Path) -> None:
    given = {"examples/run.py": CALLING.replace("train", "lib"), "lib/__init__.py": "from .train import fit"}
    program = {"lib/train.py": TRAINING.format(default="'cpu'")}
    write(tmp_path, {**program, **{name: text.format(given="") for name, text in given.items()}})
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "pyproject.toml").mkdir()
    assert codes(tmp_path, "lib/train.py") == set()


@pytest.mark.parametrize(
    ("decorator", "found"),
    [
        ("", set()),
        ("@torch.enable_grad()", set()),
        ("@click.command()", FOUND),
        ("@app.command()", FOUND),
        ("@hydra.main(config_path='conf')", FOUND),
    ],
)
def test_a_command_gets_what_the_command_line_says(tmp_path: Path, decorator: str, found: set[str]) -> None:
    imports = "import click\nimport hydra\nimport typer\n\napp = typer.Typer()\n"
    program = TRAINING.format(default="'cpu'").replace("    def fit", f"    {decorator}\n    def fit")
    write(tmp_path, {"train.py": program, "other.py": ""})
    (tmp_path / "train.py").write_text(imports + (tmp_path / "train.py").read_text() + "\nfit(model, loader)\n")
    assert codes(tmp_path, "train.py") == found


NETWORK = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self, size, device="cpu"):
            super().__init__()
            self.scale = torch.ones(size).to(device)
    """


@pytest.mark.parametrize(("given", "place"), [("3", Place.HOST), ("3, 'cuda'", Place.ACCELERATOR)])
def test_the_constructor_of_a_network_of_another_file_too(tmp_path: Path, given: str, place: Place) -> None:
    write(tmp_path, {"net.py": NETWORK, "main.py": f"from net import Net\n\nnet = Net({given})\nnet.eval()\n"})
    model = model_of(tmp_path, "net.py")
    (moved,) = model.calls_to(".to")
    assert model.value(moved.node).place is place


def test_what_a_test_leaves_out_may_be_on_the_device_that_is_the_default(tmp_path: Path) -> None:
    write(tmp_path, {"lib/__init__.py": "", "lib/train.py": TRAINING.format(default="'cuda'"), "tests/test_a.py": TEST})
    assert codes(tmp_path, "lib/train.py") == FOUND
