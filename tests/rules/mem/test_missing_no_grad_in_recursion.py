"""MEM05: what a function returns that calls itself is not followed on every way of calls."""

from __future__ import annotations

from collections import Counter

import libcst as cst
import pytest

from tests.support import findings
from torchlint.analyses import fate

HEAD = """
import torch

net = torch.nn.Linear(3, 3)

def value(node, x):
    a = net(x)
"""
BRANCH = """    if node.op == {i}:
        return value(node.left, a) + value(node.right, a)
"""
TAIL = """    return a

def evaluate(tree, test_loader):
    net.eval()
    for x in test_loader:
        out = value(tree, net(x))
        print(out.shape)
"""


def test_a_function_with_many_calls_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    uses: Counter[fate._Trail] = Counter()
    use = fate._Trail._use

    def counted(trail: fate._Trail, node: cst.CSTNode) -> None:
        uses[trail] += 1
        if uses[trail] > 10_000:
            raise RuntimeError("the value is followed on every way of calls")
        use(trail, node)

    monkeypatch.setattr(fate._Trail, "_use", counted)
    findings(HEAD + "".join(BRANCH.format(i=i) for i in range(6)) + TAIL, "MEM05")
    assert uses
