"""TRAIN10: `.data` of what is asked for it, of single elements, and of what is only compared."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.support import findings, fixed

ASKED = "import torch\n\ndef shown(obj):\n    return {test} and torch.is_tensor(obj.data)\n"


@pytest.mark.parametrize(
    ("test", "found"),
    [('hasattr(obj, "data")', 0), ('hasattr(obj, "shape")', 1), ('hasattr(obj.weight, "data")', 1)],
)
def test_what_may_have_no_data_is_no_tensor(test: str, found: int) -> None:
    code = ASKED.format(test=test).replace("return ", "obj.unsqueeze(0)\n    return ")
    assert len(findings(code, "TRAIN10")) == found


@pytest.mark.parametrize(
    ("element", "fixes"),
    [
        ("rows[0, 1, 2].data[0]", 0),
        ("rows[0, 1:, 2].data[0]", 1),
        ("rows[0].data[0]", 1),
    ],
)
def test_one_element_of_many_dimensions_has_no_first_one(element: str, fixes: int) -> None:
    head = "import torch\nfrom torch import nn\n\ndef f(x):\n    rows = nn.Conv2d(1, 1, 1)(x)\n"
    code = f"{head}    return {element}.cpu()\n"
    assert len(findings(code, "TRAIN10")) == 1
    assert (fixed(code, "TRAIN10", unsafe=True) != code) == bool(fixes)


def test_what_is_compared_as_a_whole_needs_no_detach() -> None:
    code = "import torch\nfrom torch import nn\n\ndef f(a: nn.Linear, b: nn.Linear):\n    return {}\n"
    before = code.format("torch.equal(a.weight.data, b.weight.data)")
    after = code.format("torch.equal(a.weight, b.weight)")
    assert fixed(before, "TRAIN10", unsafe=True) == after
    one, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    results = []
    for text in (before, after):
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        results.append([namespace["f"](one, one), namespace["f"](one, other)])
    assert results[0] == results[1] == [True, False]


def test_no_grad_leaves_such_an_element_as_it_is() -> None:
    code = """\
import torch
from torch import nn

def show(net: nn.Module, loader, rows):
    net.eval()
    for x in loader:
        y = net(x.cuda())
        print(y[0, rows, 1].data[0], y[0].data)
"""
    after = fixed(code, "MEM05", unsafe=True)
    assert "torch.no_grad()" in after
    assert "print(y[0, rows, 1].data[0], y[0])" in after
