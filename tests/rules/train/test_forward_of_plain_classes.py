"""TRAIN07: an object that has a `forward` and all else that modules have, but is none, cannot be called."""

from __future__ import annotations

import pytest

from tests.support import findings

WRAPPER = """
import torch
from torch import nn

class Wrapper{bases}:
    def __init__(self, net, device):
        {start}
        self.net = net.to(device)

    def forward(self, x):
        return self.net(x)

    def parameters(self):
        return self.net.parameters()

    def train(self):
        self.net.train()
        return self

    def eval(self):
        self.net.eval()
        return self

def teach(batches):
    teacher = Wrapper(nn.Linear(4, 4), "cuda").eval()
    with torch.no_grad():
        return [teacher.forward(x.to("cuda")) for x in batches]
"""


@pytest.mark.parametrize(
    ("bases", "start", "count"),
    [("", "pass", 0), ("(object)", "pass", 0), ("(nn.Module)", "super().__init__()", 1)],
)
def test_only_modules_are_called(bases: str, start: str, count: int) -> None:
    assert len(findings(WRAPPER.format(bases=bases, start=start), "TRAIN07")) == count
