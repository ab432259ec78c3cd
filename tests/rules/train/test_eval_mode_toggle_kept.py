"""TRAIN04: a mode that was noted comes back, and a network is in the mode that it has under its other names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.train.evaluated_networks import SETUP
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

NOTED = """\
def perplexity(model, batches):
    {before}
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in batches:
            total += F.cross_entropy(model(x), y).item()
    {after}
    return total

net.train()
for epoch in range(3):
    train_epoch()
    print(perplexity(net, test_loader))
"""

GIVEN_BACK = {
    "in a condition": ("was_training = model.training", "if was_training:\n        model.train()"),
    "in both branches": (
        "was_training = model.training",
        "if was_training:\n        model.train()\n    else:\n        model.eval()",
    ),
    "in a condition and as an argument": (
        "was_training = model.training",
        "if was_training:\n        model.train(was_training)",
    ),
    "as an argument": ("mode = model.training", "model.train(mode)"),
    "of the network itself": ("mode = net.training", "net.train(mode=mode)"),
}
LOST = {
    "noted too late": ("pass", "was_training = model.training\n    if was_training:\n        model.train()"),
    "noted and not used": ("was_training = model.training", "pass"),
    "nothing is noted": ("pass", "pass"),
}


@pytest.mark.parametrize(("before", "after"), GIVEN_BACK.values(), ids=GIVEN_BACK.keys())
def test_a_mode_that_was_noted_comes_back(before: str, after: str) -> None:
    assert findings(SETUP + NOTED.format(before=before, after=after), "TRAIN04") == []


@pytest.mark.parametrize(("before", "after"), LOST.values(), ids=LOST.keys())
def test_evaluation_mode_that_stays_is_found(before: str, after: str) -> None:
    (finding,) = findings(SETUP + NOTED.format(before=before, after=after), "TRAIN04")
    assert "Nothing calls" in finding.message


ASKED = """\
def accuracy():
    net.eval()
    with torch.no_grad():
        return sum((net(x).argmax(1) == y).sum() for x, y in test_loader)

for epoch in range(3):
    if {test}:
        net.{switch}()
    train_epoch()
    print(accuracy())
"""


@pytest.mark.parametrize(
    ("test", "switch", "found"),
    [
        ("not net.training", "train", 0),
        ("net.training", "train", 1),
        ("not net.training", "float", 1),
        ("not other.training", "train", 1),
    ],
)
def test_a_network_that_is_asked_for_its_mode_is_in_the_other_one_else(test: str, switch: str, found: int) -> None:
    code = SETUP + "other = nn.Linear(4, 3)\n" + ASKED.format(test=test, switch=switch)
    assert len(findings(code, "TRAIN04")) == found


SWITCHING = """\
import torch
from torch import nn

class Switching(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
        self.other = nn.Identity()

    def forward(self, x, evaluated=False):
        {switch}
        return self.body(x)
"""
TOLD = """\
import torch
import torch.nn.functional as F
from network import Switching

def train(model, train_loader, optimizer):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

def test(model, test_loader):
    hits = 0
    with torch.no_grad():
        for x, y in test_loader:
            hits += (model(x, evaluated=True).argmax(1) == y).sum()
    return hits

def main(train_loader, test_loader):
    model = Switching()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        train(model, train_loader, optimizer)
        print(test(model, test_loader))
"""


@pytest.mark.parametrize(
    ("switch", "found"), [("self.eval() if evaluated else self.train()", 0), ("self.other.eval()", 1)]
)
def test_a_network_that_is_told_its_mode_with_each_pass_switches_itself(
    tmp_path: Path, switch: str, found: int
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "network.py").write_text(SWITCHING.format(switch=switch))
    (tmp_path / "main.py").write_text(TOLD)
    source = Source.read(tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("TRAIN04"), strict=True, project=Project())) == found


PROBE = """\
class Probe:
    def __init__(self):
        self.start = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
        self.end = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))

    def evaluate(self, batches):
        self.start.{start}()
        self.end.{end}()
        first = {first}
        with torch.no_grad():
            for x, y in batches:
                print(first(x).argmax(1))

probe = Probe()
probe.evaluate(test_loader)
"""


@pytest.mark.parametrize(
    ("start", "end", "first", "count"),
    [
        ("eval", "eval", "self.start", 0),
        ("eval", "train", "self.start", 0),
        ("train", "eval", "self.start", 1),
        ("eval", "eval", "self.start if test_loader else self.end", 0),
        ("eval", "train", "self.start if test_loader else self.end", 0),
        ("train", "train", "self.start if test_loader else self.end", 1),
    ],
)
def test_another_name_of_a_network_has_its_mode(start: str, end: str, first: str, count: int) -> None:
    code = PROBE.format(start=start, end=end, first=first)
    assert len(findings(SETUP + code, "TRAIN04")) == count


def test_names_that_are_given_round_in_a_circle_end_the_search() -> None:
    circle = "one, two = net, net\nwhile True:\n    one = two\n    two = one\n    print(one(test_loader[0][0]))\n"
    assert findings(SETUP + circle, "TRAIN04") == []


UNDONE = """\
def evaluate(batches):
    total = 0.0
    with torch.no_grad():
        for x, y in batches:
            {first}
            total += F.cross_entropy(net(x), y).item()
    return total

def train(epochs, batches):
    for epoch in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
        print(evaluate(batches))
"""


def test_a_loop_that_switches_to_training_itself_gets_no_switch_in_front_of_it() -> None:
    found = findings(SETUP + UNDONE.format(first="net.train()"), "TRAIN04")
    assert [finding.fix for finding in found] == [None]


FUNCTION_OR_NETWORK = """\
def evaluate_accuracy(model, batches):
    total = 0.0
    with torch.no_grad():
        for x, y in batches:
            if {test}:
                model.eval()
                total += (model(x).argmax(1) == y).sum().item()
                model.train()
            else:
                total += (model(x).argmax(1) == y).sum().item()
    return total

net.train()
for epoch in range(3):
    train_epoch()
    print(evaluate_accuracy(net, test_loader))
"""


@pytest.mark.parametrize(("test", "count"), [("isinstance(model, nn.Module)", 0), ("len(x) > 3", 1)])
def test_what_is_no_network_has_no_mode(test: str, count: int) -> None:
    assert len(findings(SETUP + FUNCTION_OR_NETWORK.format(test=test), "TRAIN04")) == count


SWITCHED_IN_A_LOOP = """\
critic = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5))
both, others = [net, critic], [critic]
for epoch in range(3):
    for each in {switched}:
        each.train()
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    for each in [net, critic]:
        each.eval()
    with torch.no_grad():
        for x, y in test_loader:
            print(net(x))
"""


@pytest.mark.parametrize(
    ("switched", "count"), [("[net, critic]", 0), ("(net,)", 0), ("both", 0), ("[critic]", 1), ("others", 1)]
)
def test_a_loop_over_networks_by_name_switches_each_of_them(switched: str, count: int) -> None:
    assert len(findings(SETUP + SWITCHED_IN_A_LOOP.format(switched=switched), "TRAIN04")) == count
