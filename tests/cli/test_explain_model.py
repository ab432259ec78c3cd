"""`torchlint explain-model`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_check import call
from tests.test_notebook import notebook

TRAIN = """\
import torch
from lib.net import Net

def train(model, loader, optimizer):
    for i, (x, y) in enumerate(loader):
        loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(loss.item())

if __name__ == "__main__":
    train(Net(), torch.utils.data.DataLoader([1]), torch.optim.SGD(Net().parameters(), lr=0.1))
"""


@pytest.fixture
def tree(project: Path) -> Path:
    (project / "pyproject.toml").touch()
    (project / "train.py").write_text(TRAIN)
    (project / "lib").mkdir()
    (project / "lib" / "net.py").write_text("import torch.nn as nn\n\nclass Net(nn.Module):\n    pass\n")
    return project


def test_a_line(tree: Path) -> None:
    shown = call("explain-model", "train.py:11").stdout.splitlines()
    assert shown[:2] == ["train.py:11, in train", "    print(loss.item())"]
    assert "line 5: Each iteration is a training step, since it runs `loss.backward()` (line 8)." in shown
    assert "line 10: Only every so often, to log or save something." in shown
    assert "Gradients are on." in shown
    at = shown.index("`loss` is a tensor, carries a graph")
    assert shown[at + 1] == "    line 6: `loss` is a tensor, carries a graph: what `model` computes."


@pytest.mark.parametrize(
    ("arguments", "done"), [("", "frees its graph"), ("retain_graph=True", "keeps its graph")], ids=["freed", "kept"]
)
def test_what_a_backward_pass_does_to_the_graph_of_a_tensor(tree: Path, arguments: str, done: str) -> None:
    (tree / "train.py").write_text(TRAIN.replace("backward()", f"backward({arguments})"))
    shown = call("explain-model", "train.py:11").stdout.splitlines()
    assert f"    line 8: `loss.backward({arguments})` {done}." in shown
    assert not any("its graph" in line for line in call("explain-model", "train.py:10").stdout.splitlines())


def test_a_loss_of_the_same_criterion_has_a_graph_of_its_own(tree: Path) -> None:
    step = "        loss = criterion(model(x), y)\n        held = criterion(model(y), x)\n"
    train = TRAIN.replace("loader, optimizer", "loader, optimizer, criterion").replace(
        "        loss = model(x, y)\n", step
    )
    (tree / "train.py").write_text(train.replace("print(loss.item())", "print(held.item(), loss.item())"))
    believed = call("explain-model", "train.py:12").stdout.partition("`loss` is a tensor")
    assert "`held` is a tensor, carries a graph" in believed[0]
    assert "frees its graph" not in believed[0]
    assert "line 9: `loss.backward()` frees its graph." in believed[2]


def test_a_file(tree: Path) -> None:
    shown = [line.strip() for line in call("explain-model", "train.py").stdout.splitlines()]
    assert f"lib.net.Net: {Path('lib/net.py')}" in shown
    assert "train (line 4): one call is a pass over data" in shown
    assert "model is a module of class `lib.net.Net`" in shown
    assert "optimizer is an optimizer, `torch.optim.SGD`" in shown
    assert "called from line 14" in shown
    assert any(line.startswith("does: backward, optimizer steps, zero grads, forwards") for line in shown)
    assert any(line.startswith("line 5: each iteration is a training step") for line in shown)


def test_a_line_of_a_notebook(project: Path) -> None:
    (project / "a.ipynb").write_bytes(notebook("import torch", ["n = 1\n", "x = torch.zeros(3)"]))
    shown = call("explain-model", "a.ipynb:2:2").stdout.splitlines()
    assert shown[:2] == ["a.ipynb:2:2", "    x = torch.zeros(3)"]
    assert "`x` is a tensor of floats with 1 dimension on the host, carries no graph" in shown


def test_a_line_without_code(tree: Path) -> None:
    assert "No expression begins on this line." in call("explain-model", "train.py:3").stdout


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere.py", "nowhere.py: no such file"),
        ("nowhere.py:3", "nowhere.py: no such file"),
        ("train.py:99", "there is no line 99; the last one is 15"),
        ("train.py:0", "there is no line 0"),
        ("train.py:1:2", "only notebooks have cells"),
        ("lib", "lib: a folder; name a file"),
    ],
)
def test_a_place_that_is_none(tree: Path, place: str, message: str) -> None:
    result = call("explain-model", place)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_notebook_says_which_cells_it_has(project: Path) -> None:
    (project / "a.ipynb").write_bytes(notebook("import torch", ["n = 1\n", "x = torch.zeros(3)"]))
    assert "its code cells are " in call("explain-model", "a.ipynb:2").stderr


def test_a_file_that_does_not_parse(project: Path) -> None:
    (project / "bad.py").write_text("import torch\ndef f(:\n")
    result = call("explain-model", "bad.py")
    assert result.exit_code == 2
    assert "bad.py: invalid syntax in line 2" in result.stderr
