"""MEM05: networks that are one of several classes, none of which has parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mem.projects import linted

CHOSEN = """
import torch
from distances import Mean, Squared

def measure(net, loader):
    net.eval()
    found = []
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        found.append(net(x, y))
    return torch.stack(found).mean()

def main(args, loader):
    if args.squared:
        net = Squared()
    else:
        net = Mean()
    if args.devices > 1:
        net = torch.nn.DataParallel(net)
    net = net.cuda()
    print(measure(net, loader))
"""
BOTH = """
import torch
from torch import nn

class Squared(nn.Module):
    def forward(self, x, y):
        return (x - y).square().sum()

class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = {first}

    def forward(self, x, y):
        return self.first(x - y).mean()
"""


@pytest.mark.parametrize(("first", "is_found"), [("nn.Tanh()", False), ("nn.Linear(4, 4)", True)])
def test_of_several_classes_that_may_be_chosen_none_has_parameters(tmp_path: Path, first: str, is_found: bool) -> None:
    found = linted(tmp_path, distances=BOTH.format(first=first), main=CHOSEN)
    assert bool(found) is is_found
