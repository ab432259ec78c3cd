"""MEM05 on layers of which a signature, and no caller, says what class they are of."""

from __future__ import annotations

import pytest

from tests.support import findings

TUNED = """
    import time
    import torch
    from torch import nn

    class Packed(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.register_buffer("weight", torch.zeros(n, n))
            {more}

        def forward(self, x):
            return x @ self.weight

    def tune(layer: Packed, x):
        for _ in range(9):
            layer(x)
            torch.cuda.synchronize()
            start = time.time()
            layer(x)
            torch.cuda.synchronize()
            print(time.time() - start)

    def tune_all(model, x):
        for name, layer in model.named_modules():
            tune(layer, x)
"""


@pytest.mark.parametrize(("more", "count"), [("pass", 0), ("self.bias = nn.Parameter(torch.zeros(n))", 1)])
def test_a_signature_says_of_which_class_a_layer_is(more: str, count: int) -> None:
    """Of which its callers only know that it is a module of some network."""
    assert len(findings(TUNED.format(more=more), "MEM05")) == count
