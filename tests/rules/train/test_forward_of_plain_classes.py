"""TRAIN07: an object that has a `forward` and all else that modules have, but is none, cannot be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

WRAPPER = """
import torch
from torch import nn

class Wrapper{bases}:
    def __init__(self, net, device):
        {start}
        self.net = net.to(device)

    def forward(self, x):
        return self.net(x)

    def parameters(self):
        return self.net.parameters()

    def train(self):
        self.net.train()
        return self

    def eval(self):
        self.net.eval()
        return self

def teach(batches):
    teacher = Wrapper(nn.Linear(4, 4), "cuda").eval()
    with torch.no_grad():
        return [teacher.forward(x.to("cuda")) for x in batches]
"""


@pytest.mark.parametrize(
    ("bases", "start", "count"),
    [("", "pass", 0), ("(object)", "pass", 0), ("(nn.Module)", "super().__init__()", 1)],
)
def test_only_modules_are_called(bases: str, start: str, count: int) -> None:
    assert len(findings(WRAPPER.format(bases=bases, start=start), "TRAIN07")) == count


LAYERS = """\
import torch


class Sequential{bases}:
    def __init__(self, layers=()):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, gradient):
        return gradient

    def zero_grad(self):
        pass
"""
HOLDER = """\
import pickle
import layers as nn


class Holder:
    def __init__(self, parts):
        self.model = nn.Sequential()

    def load(self, file):
        self.model = pickle.load(file).model

    def predict(self, x):
        return self.model.forward(x)
"""
HELD = """\
import torch
from holder import Holder

holder = Holder([])
for _ in range(10):
    holder.model.zero_grad()
    out = holder.model.forward(torch.rand(4, 4))
    {use}
"""


@pytest.mark.parametrize(
    ("bases", "use", "count"),
    [
        ("", "holder.model.backward(out)", 0),
        ("", "out.sum().backward()", 0),
        ("(torch.nn.Module)", "out.sum().backward()", 1),
        ("", "holder.model.state_dict()", 1),
    ],
)
def test_what_an_object_of_another_file_holds(tmp_path: Path, bases: str, use: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "holder.py").write_text(HOLDER)
    (tmp_path / "layers.py").write_text(LAYERS.format(bases=bases))
    (tmp_path / "main.py").write_text(HELD.format(use=use))
    source = Source.read(tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("TRAIN07"), strict=True, project=Project())) == count


def test_a_class_beside_says_nothing_of_what_is_only_run(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "layers.py").write_text(LAYERS.format(bases=""))
    main = "import torch\nimport layers\n\ndef run(model, x):\n    net = torch.nn.DataParallel(model)\n"
    (tmp_path / "main.py").write_text(main + "    return net.module.forward(x)\n")
    source = Source.read(tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("TRAIN07"), strict=True, project=Project())) == 1


def test_a_module_that_nobody_has_had_in_hand_has_no_hooks() -> None:
    code = """
import torch
from torch import nn

net = nn.Linear(4, 4)
pooled = nn.AvgPool2d(2).forward(net.forward(torch.ones(1, 4, 4)))
"""
    [finding] = findings(code, "TRAIN07")
    assert "`net.forward(...)`" in finding.message
