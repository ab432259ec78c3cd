"""TRAIN10: `.data` stays where a write behind it would be noticed by autograd through `.detach()`."""

from __future__ import annotations

import pytest
import torch

from tests.support import fixed

BETWEEN = """
import torch

def shrink(t):
    t.mul_(0.5)

def passed_on(t):
    shrink(t)

def shown(t):
    print(t.sum())

w = torch.ones(2, requires_grad=True)
loss = (w ** 2).sum()
{write}
loss.backward()
"""


@pytest.mark.parametrize(
    "write",
    [
        "values = w.data\nshrink(values)",
        "values = w.data[:1]\npassed_on(values)",
        "passed_on(w.data)",
        "torch.mul(w, 0.5, out=w.data)",
        "values = w.data\nvalues *= 0.5",
    ],
)
def test_a_write_between_a_pass_and_its_gradients_goes_behind_the_back_of_autograd(write: str) -> None:
    code = BETWEEN.format(write=write).lstrip()
    if "out=" not in write:
        with pytest.raises(RuntimeError, match="inplace operation"):
            exec(code.replace("w.data", "w.detach()"), {})
    assert fixed(code, "TRAIN10") == code
    if "out=" not in write:
        exec(code, {})


@pytest.mark.parametrize("write", ["shown(values)", "w.grad = torch.zeros(2).add_(values)"])
def test_what_only_reads_does_not_mind(write: str) -> None:
    code = BETWEEN.format(write=f"values = w.data\n{write}").lstrip()
    after = fixed(code, "TRAIN10")
    assert after == code.replace("w.data", "w.detach()")
    exec(after, {})
    assert torch.is_grad_enabled()
