"""MEM01: a dict has no `detach()`."""

from __future__ import annotations

import pytest

from tests.support import findings

SAMPLING = """
import torch
from torch import nn

def sample(net: nn.Module, x, times):
    net.eval()
    kept = []
    for t in times:
        out = net(x.cuda() * t)
        step = {step}
        kept.append(step)
    print(len(kept))
    return kept

sample(nn.Linear(4, 4).cuda(), torch.ones(4), range(100))
"""


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        ('{"t": t, "out": out.clone()}', "detach the tensors that go into it"),
        ("out.clone()", "put `step.detach()` into it"),
    ],
)
def test_the_advice_is_one_that_can_be_followed(step: str, advice: str) -> None:
    (finding,) = findings(SAMPLING.replace("{step}", step), "MEM01")
    assert finding.message.endswith(advice)
