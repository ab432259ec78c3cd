"""KERN02: zeros that the next call clips are there for that."""

from __future__ import annotations

import pytest

from tests.support import findings

WARM_UP = """
import torch
from torch.nn.utils import clip_grad_norm_

def warm_up(net, loss):
    for parameter in net.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    {after}
    loss.backward()
"""


@pytest.mark.parametrize(("after", "count"), [("clip_grad_norm_(net.parameters(), 1.0)", 0), ("pass", 1)])
def test_zeros_that_are_clipped(after: str, count: int) -> None:
    assert len(findings(WARM_UP.format(after=after), "KERN02")) == count
