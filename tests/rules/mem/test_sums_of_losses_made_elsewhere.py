"""MEM02: losses of a class of another file, which runs the network that it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mem.projects import linted

LOSS = """
import torch
from torch import nn


class PairLoss(nn.Module):
    def forward(self, batch, net):
        inputs, targets = batch
        total = torch.zeros(1)
        return total.mean() if net.training else self.plain(net, inputs, targets)
"""
MAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from losses import PairLoss


def train(loader, net, criterion, optimizer):
    net.train()
    total = 0
    for batch in loader:
        optimizer.zero_grad()
        loss = criterion(batch, net)
        {}
        optimizer.step()
        total += loss
    return total


net = nn.Linear(4, 2)
train(DataLoader(samples, 4), net, PairLoss(), torch.optim.SGD(net.parameters(), 0.1))
"""


@pytest.mark.parametrize(
    ("step", "lines"), [("loss.backward()", ["total += loss"]), ("report(net)", []), ("loss = loss.item()", [])]
)
def test_a_loss_that_goes_backward(tmp_path: Path, step: str, lines: list[str]) -> None:
    main = MAIN.format(step)
    found = linted(tmp_path, "MEM02", main=main, losses=LOSS)
    assert [main.splitlines()[finding.line - 1].strip() for finding in found] == lines
