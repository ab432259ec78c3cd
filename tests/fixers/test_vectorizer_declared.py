"""The loop vectoriser on what is no parameter with an annotation, and a tensor all the same."""

from __future__ import annotations

import pytest

from tests.fixers.generated import RULES
from tests.support import fixed

LOOP = "    out = torch.zeros(n)\n    for i in range(n):\n        out[i] = x[i].sum() * 2\n    return out\n"
HEAD = "import torch\nfrom given import given\n\n\ndef f(x, n):\n"
TENSORS = {
    "asked for": "    assert isinstance(x, torch.Tensor)\n",
    "made one": "    if not isinstance(x, torch.Tensor):\n        x = torch.tensor(x)\n",
    "refused": "    if not isinstance(x, torch.Tensor):\n        raise TypeError(x)\n",
    "moved on one way": "    x = torch.ones(n, 3)\n    if torch.cuda.is_available():\n        x = x.cuda()\n",
    "of two sources": "    x = torch.ones(n, 3)\n    if n > 3:\n        x = torch.zeros(n, 3)\n",
    "changed in place": "    x = torch.ones(n, 3)\n    x *= 2\n",
    "a part": "    x, y = given(x).chunk(2, dim=1)\n",
    "split": "    x, y = given(x).split(split_size=(1, 2), dim=1)\n",
    "cut and moved": "    y = x[:, 1:4].contiguous()\n",
    "measured": "    n = x.size(0)\n",
    "of sizes": "    x = torch.FloatTensor(n, 3).fill_(n)\n",
}
OTHERS = {
    "anything": "",
    "asked for in a branch": "    if n:\n        assert isinstance(x, torch.Tensor)\n",
    "asked for one of two": "    assert isinstance(x, (torch.Tensor, list))\n",
    "asked for the contrary": "    assert not isinstance(x, torch.Tensor)\n",
    "made a list": "    if not isinstance(x, torch.Tensor):\n        x = list(x)\n",
    "something else on one way": "    x = torch.ones(n, 3)\n    if n > 3:\n        x = given(x)\n",
    "a list of parts": '    x = given(x).split(" ")\n',
    "moved if it is one": "    if isinstance(x, torch.Tensor):\n        x.detach()\n",
    "moved if it is one, in one line": "    y = x.detach() if torch.is_tensor(x) else None\n",
    "moved behind a question": '    y = hasattr(x, "detach") and x.detach()\n',
    "moved where that may fail": "    try:\n        x.cuda()\n    except AttributeError:\n        pass\n",
    "a number that grows": "    x = 2\n    x *= given(x)\n",
}


@pytest.mark.parametrize("name", TENSORS)
def test_what_can_be_nothing_but_a_tensor_is_one(name: str) -> None:
    code = HEAD + TENSORS[name] + LOOP
    assert "for " not in fixed(code, *RULES).split("def f")[1]


@pytest.mark.parametrize("name", OTHERS)
def test_what_may_be_something_else_keeps_its_loop(name: str) -> None:
    code = HEAD + OTHERS[name] + LOOP
    assert fixed(code, *RULES) == code


@pytest.mark.parametrize(("given", "is_rewritten"), [("grad", True), ("kept", True), ("size", False), ("of", False)])
def test_what_autograd_hands_to_a_backward_pass_is_a_tensor(given: str, is_rewritten: bool) -> None:
    code = f"""\
import torch


class Twice(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad, size=None):
        kept, other = ctx.saved_tensors
        of = ctx.of
        rows = []
        for t in range(3 * 3):
            rows.append(torch.exp({given}[t]))
        return torch.stack(rows)
"""
    assert (fixed(code, *RULES) != code) == is_rewritten


@pytest.mark.parametrize(
    ("value", "is_rewritten"), [("x[i] * 2", True), ("x[i, 0] * 2", False), ("x[i, 0].exp() * 2", True)]
)
def test_an_array_of_numpy_has_no_rows_to_fill_a_tensor_with_but_numbers(value: str, *, is_rewritten: bool) -> None:
    loop = LOOP.replace("x[i].sum() * 2", value).replace("zeros(n)", "zeros(n, m)")
    code = f"{HEAD}    n, m = x.shape\n{loop}"
    assert ("for " not in fixed(code, *RULES).split("def f")[1]) is is_rewritten


def test_an_object_of_a_class_of_the_file_is_no_tensor_for_its_size() -> None:
    code = """\
import torch


class Doubled:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, i):
        return self.rows[i] * 2

    def size(self, dim):
        return self.rows.size(dim)


def f(x: torch.Tensor):
    doubled = Doubled(x)
    out = torch.zeros(doubled.size(0))
    for i in range(doubled.size(0)):
        out[i] = doubled[i] * 2
    return out
"""
    assert fixed(code, *RULES) == code
    assert "for " not in fixed(code.replace("Doubled(x)", "x * 2"), *RULES)
