"""TRAIN04: the mode that a return, an exception or one side of an expression leaves a network in."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.support import findings

NETWORK = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(self.layer(x))
"""
TRAINING = (
    NETWORK
    + """
def check(net, batches):
    net.eval()
    {check}

def train(batches, flag=True):
    modes = []
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x in batches:
            modes.append(net.training)
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        check(net, batches)
    return modes
"""
)
WITH_LAST = """for x in batches:
        try:
            with torch.no_grad():
                net(x)
            {leaves}
        finally:
            net.train()"""


def modes(code: str) -> list[bool]:
    names: dict[str, Any] = {}
    exec(code, names)
    found = names["train"]([torch.rand(2, 3), torch.rand(2, 3)])
    assert isinstance(found, list)
    return found


BACK = [
    WITH_LAST.format(leaves="return"),
    WITH_LAST.format(leaves="break"),
    WITH_LAST.format(leaves="continue"),
    "try:\n        with torch.no_grad():\n            return net(batches[0])\n    finally:\n        net.train()",
]
AWAY = [
    "try:\n        with torch.no_grad():\n            return net(batches[0])\n    finally:\n        print(1)",
    "with torch.no_grad():\n        return net(batches[0])",
]


@pytest.mark.parametrize("check", BACK)
def test_what_leaves_comes_through_the_last_block(check: str) -> None:
    code = TRAINING.format(check=check)
    assert all(modes(code))
    assert findings(code, "TRAIN04") == []


@pytest.mark.parametrize("check", AWAY)
def test_without_a_switch_there_it_is_left_in_evaluation_mode(check: str) -> None:
    code = TRAINING.format(check=check)
    assert not all(modes(code))
    assert len(findings(code, "TRAIN04")) == 1


EVALUATION = (
    NETWORK
    + """
def train(batches, flag=True):
    modes = []
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        net.train()
        for x in batches:
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {switch}
            modes.append(net.training)
            with torch.no_grad():
                print(sum((net(x) > 0).sum() for x in batches))
    return modes
"""
)
SWITCHED = [
    """try:
            net.eval()
            net(batches[0][0, 0])
            net.train()
        except RuntimeError:""",
    "flag and net.eval()\n        if flag:",
    "net.eval() if flag else net.train()\n        if flag:",
]


@pytest.mark.parametrize("switch", SWITCHED)
def test_what_may_be_in_evaluation_mode_is_not_said_to_be_in_training(switch: str) -> None:
    code = EVALUATION.format(switch=switch)
    assert not any(modes(code))
    assert findings(code, "TRAIN04") == []


def test_it_is_where_every_side_of_an_expression_switches_it_on() -> None:
    code = EVALUATION.format(switch="net.train() if flag else net.train(True)\n        if flag:")
    assert all(modes(code))
    assert len(findings(code, "TRAIN04")) == 1


FOLDS = (
    NETWORK
    + """
wide, narrow = [], []
for fold in range(3):
    net = Net()
    net.load_state_dict(torch.load(f"{{fold}}.pt"))
    {wide}
    wide.append(net)
for fold in range(3):
    net = Net()
    net.load_state_dict(torch.load(f"narrow{{fold}}.pt"))
    net.eval()
    narrow.append(net)

def predict(x):
    with torch.no_grad():
        found = []
        for fold in range(3):
            net = wide[fold]
            found.append(net(x).argmax(1))
        for fold in range(3):
            net = narrow[fold]
            found.append(net(x).argmax(1))
        return found
"""
)


@pytest.mark.parametrize(("wide", "lines"), [("net.eval()", []), ("net.float()", [30])])
def test_a_network_of_a_list_is_as_it_was_put_there(wide: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(FOLDS.format(wide=wide), "TRAIN04")] == lines
