"""MEM10: tensors that grow in few iterations of a loop, and conditions that say nothing of that."""

from __future__ import annotations

import pytest

from tests.support import findings

SAMPLING = """
    import torch

    def sample(net, x, shown, verbose):
        saved = None
        for step in range(1000):
            x = net(x, step)
            {}
        return saved
"""


@pytest.mark.parametrize(
    ("growth", "count"),
    [
        ("if step % 100 == 0: saved = x if saved is None else torch.cat([saved, x])", 0),
        ("if step in shown: saved = x if saved is None else torch.cat([saved, x])", 0),
        ("if verbose: saved = x if saved is None else torch.cat([saved, x])", 1),
        ("saved = x if saved is None else torch.cat([saved, x])", 1),
    ],
)
def test_a_tensor_that_grows_in_few_rounds_stays_short(growth: str, count: int) -> None:
    assert len(findings(SAMPLING.format(growth), "MEM10")) == count
