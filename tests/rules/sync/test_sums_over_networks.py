"""SYNC01: a sum over networks, each of which may lie on a device of its own, stays on the host."""

from __future__ import annotations

import pytest

from tests.support import fixed

LOSSES = """
import torch
import torch.nn.functional as F

def losses(models: list[torch.nn.Module], batches):
    {before}
    for model{with_batch} in {over}:
        {inside}
        for x, y in batches:
            device = next(model.parameters()).device
            loss = F.mse_loss(model(x.to(device)), y.to(device))
            loss.backward()
            total += loss.item()
        print(total)

losses([torch.nn.Linear(3, 1).cuda()], [(torch.randn(4, 3), torch.randn(4, 1))])
"""


@pytest.mark.parametrize(
    ("before", "inside", "is_fixed"),
    [("total = 0.0", "pass", False), ("pass", "total = 0.0", True)],
)
@pytest.mark.parametrize(("with_batch", "over"), [("", "models"), (", place", "zip(models, range(9))")])
def test_a_sum_over_networks(before: str, inside: str, with_batch: str, over: str, is_fixed: bool) -> None:
    code = LOSSES.format(before=before, inside=inside, with_batch=with_batch, over=over)
    assert ("loss.item()" not in fixed(code, "SYNC01")) is is_fixed
