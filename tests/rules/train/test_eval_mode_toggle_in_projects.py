"""TRAIN04: networks, training and evaluation that stand in several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

PROJECT = {
    "net.py": """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.Dropout())

    def forward(self, x):
        return self.body(x)
""",
    "train.py": """\
import torch
from net import Net
from evaluation import accuracy

def main(train_loader, test_loader):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in train_loader:
            opt.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
        print(accuracy(net, test_loader))
""",
    "evaluation.py": """\
import torch

def accuracy(model, test_loader):
    hits = 0
    with torch.no_grad():
        for x, y in test_loader:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits
""",
}


def lines_of(folder: Path, files: dict[str, str], name: str) -> list[int]:
    (folder / "pyproject.toml").touch()
    for file, text in files.items():
        (folder / file).write_text(text)
    source = Source.read(folder / name)
    return [finding.line for finding in lint(source, Settings.selecting("TRAIN04"), strict=True, project=Project())]


def test_finds_it_across_files(tmp_path: Path) -> None:
    assert lines_of(tmp_path, PROJECT, "evaluation.py") == [6]


@pytest.mark.parametrize("line", ["net.eval()", "net.train(False)"])
def test_another_file_may_switch_the_mode(tmp_path: Path, line: str) -> None:
    caller = PROJECT["train.py"].replace("        print(", f"        {line}\n        print(")
    assert lines_of(tmp_path, {**PROJECT, "train.py": caller}, "evaluation.py") == []


def test_training_mode_of_another_file(tmp_path: Path) -> None:
    caller = (
        PROJECT["train.py"].replace("        for x", "        net.train()\n        for x") + "        opt.x.eval()\n"
    )
    assert lines_of(tmp_path, {**PROJECT, "train.py": caller}, "evaluation.py") == [6]


def test_another_file_may_return_to_training(tmp_path: Path) -> None:
    evaluation = PROJECT["evaluation.py"].replace("    hits = 0", "    model.eval()\n    hits = 0")
    caller = PROJECT["train.py"].replace("        for x", "        net.train()\n        for x")
    assert lines_of(tmp_path, {**PROJECT, "evaluation.py": evaluation, "train.py": caller}, "evaluation.py") == []
    assert lines_of(tmp_path, {**PROJECT, "evaluation.py": evaluation, "train.py": caller}, "train.py") == []


TRIED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(x)


def test_net():
    with torch.no_grad():
        model = Net()
        out = model(torch.randn(2, 4))
    assert all(size in (2, 4) for size in out.shape)
"""


IN_SIZES = (
    TRIED[: TRIED.index("    with")]
    + """\
    for size, count in zip([2, 4], [4, 8]):
        model = Net()
        with torch.no_grad():
            out = model(torch.randn(count, 4))
        assert count in out.shape and size in (2, 4)
"""
)


@pytest.mark.parametrize("tried", [TRIED, IN_SIZES])
@pytest.mark.parametrize(("name", "count"), [("tests/test_models.py", 0), ("scripts/models.py", 1)])
def test_the_tests_of_a_project_try_networks_out(tmp_path: Path, tried: str, name: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    file = tmp_path / name
    file.parent.mkdir()
    file.write_text(tried)
    found = lint(Source.read(file), Settings.selecting("TRAIN04"), strict=True, project=Project())
    assert len(found) == count


SWITCHED_BY_ITSELF = {
    "net.py": """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x, testing=False):
        {first}
        return self.norm(x)
""",
    "train.py": """\
import torch
import torch.nn.functional as F
from net import Net

class Trainer:
    def train(self, model, loader, test_loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for x, y in loader:
                loss = F.cross_entropy(model(x, testing=False), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(self.test(model, test_loader))

    def test(self, model, loader):
        hits = 0
        with torch.no_grad():
            for x, y in loader:
                hits += (model(x, testing=True).argmax(1) == y).sum().item()
        return hits

def main(loader, test_loader):
    net = Net()
    trainer = Trainer()
    trainer.train(net, loader, test_loader)
""",
}


@pytest.mark.parametrize(
    ("first", "lines"),
    [
        ("self.eval() if testing else self.train()", []),
        ("if testing:\n            self.eval()\n        else:\n            self.train()", []),
        ("self.other = nn.Dropout().eval()", [19]),
        ("self.train(not testing)", []),
        ("if x.shape[0] == 1:\n            self.eval()", [19]),
    ],
)
def test_a_network_that_every_pass_switches_by_itself_needs_no_switch(
    tmp_path: Path, first: str, lines: list[int]
) -> None:
    files = {name: text.replace("{first}", first) for name, text in SWITCHED_BY_ITSELF.items()}
    assert lines_of(tmp_path, files, "train.py") == lines
