"""TRAIN10: of `x, y = Variable(a), Variable(b)` no second names are left, and lines stay under one another."""

from __future__ import annotations

import pytest

from tests.support import fixed

PAIRS = """\
import torch
from torch.autograd import Variable

def train(net, rows, optimizer):
    for at in range(9):
        left, right, label = rows[at]
        LINE
        loss = net(x, y).sum() + label
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("x, y = Variable(left), Variable(right)", "x, y, label = rows[at]\n        loss"),
        ("print(left)\n        x, y = Variable(left), Variable(right)", "x, y = left, right"),  # it has another use
        ("x, y = Variable(left), Variable(2 * right)", "x, y = left, 2 * right"),
        ("x, y = Variable(left), Variable(right)  # as the net calls them", "x, y = left, right  # as"),
    ],
)
def test_names_that_only_a_variable_gave(line: str, after: str) -> None:
    made = fixed(PAIRS.replace("LINE", line), "TRAIN10", unsafe=True)
    assert after in made
    assert "Variable(" not in made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.data.new_ones(", "x.new_ones("),
        ("x.data.view(-1).sub(", "x.detach().view(-1).sub("),
    ],
)
def test_the_lines_below_stay_under_the_first(before: str, after: str) -> None:
    code = "import torch\n\ndef f(x: torch.Tensor, a):\n    y = {}len(a),\n{}2)\n    return y\n"
    old, new = (code.format(start, " " * len(f"    y = {start}")) for start in (before, after))
    assert fixed(old, "TRAIN10", unsafe=True) == new
    below = code.format(f"{before}\n        ", " " * 8)
    assert fixed(below, "TRAIN10", unsafe=True) == below.replace(before, after)


def test_what_never_runs_keeps_nothing() -> None:
    code = "import torch\nfrom torch.autograd import Variable\n\ndef f(n):\n    x = Variable(torch.zeros(n))\n"
    code += "    if False:\n        x = Variable(torch.LongTensor([[n]]))\n    return x\n"
    assert "x = torch.zeros(n)" in fixed(code, "TRAIN10", unsafe=True)
