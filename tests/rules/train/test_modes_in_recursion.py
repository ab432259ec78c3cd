"""TRAIN04: functions that call each other are asked for what they were given once, not on every way between them."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst
import pytest

from tests.semantics.programs import model_of
from tests.support import findings
from torchlint.analyses.modules import module_mode
from torchlint.semantics.entities import Function

HEAD = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.layer(x))

def evaluate(net, test_loader):
    with torch.no_grad():
        for x, y in test_loader:
            print((net(x).argmax(1) == y).sum())

"""
STEP = "def step{i}(net, test_loader, k):\n    evaluate(net, test_loader)\n"
MAIN = "def main(test_loader):\n    net = Net().cuda()\n    {switch}\n    step0(net, test_loader, 3)\n"


def program(functions: int, switch: str) -> str:
    calls = "".join(f"    if k == {i}:\n        step{i}(net, test_loader, k - 1)\n" for i in range(functions))
    return HEAD + "".join(STEP.format(i=i) + calls + "\n" for i in range(functions)) + MAIN.format(switch=switch)


@pytest.mark.parametrize(("switch", "count"), [("net.eval()", 0), ("pass", 1)])
@pytest.mark.parametrize("wrapped", [False, True])
def test_functions_that_call_each_other(
    switch: str, count: int, wrapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[str] = []
    before = module_mode._Walk.before

    def counted(walk: module_mode._Walk, function: Function) -> Mapping[cst.CSTNode, module_mode.Modes]:
        walks.append(function.name)
        if len(walks) > 300:
            raise RuntimeError("the functions are walked through again and again")
        return before(walk, function)

    monkeypatch.setattr(module_mode._Walk, "before", counted)
    source = program(3, switch)
    if wrapped:
        source = source.replace(
            "evaluate(net, test_loader):", "evaluate(base, test_loader):\n    net = nn.Sequential(base)"
        )
    assert len(findings(source, "TRAIN04")) == count


@pytest.mark.parametrize(("switch", "is_evaluated"), [("net.eval()", True), ("pass", False)])
def test_a_function_that_only_those_call_which_were_asked_says_nothing_of_its_own(
    switch: str, is_evaluated: bool
) -> None:
    model = model_of(program(2, switch))
    forward = next(call for call in model.calls if call.is_forward and call.function.name == "evaluate")
    assert module_mode.is_evaluated_at(model, forward) is is_evaluated
