"""MEM05: what only the constructor of a network runs, and what something out of sight takes gradients of."""

from __future__ import annotations

import pytest

from tests.support import findings

CENTRED = """
import torch
from torch import nn


class Centred({base}):
    def __init__(self, points):
        super().__init__()
        self.net = nn.Linear(3, 3)
        {made}

    def load(self, points):
        self.means = self.statistics(points)

    def statistics(self, points):
        self.net.eval()
        return self.net(points).mean(0).tolist()

    def evaluate(self, batches):
        {run}
"""


@pytest.mark.parametrize(
    ("base", "made", "run", "count"),
    [
        ("nn.Module", "self.load(points)", "pass", 0),
        ("nn.Module", "self.load(points)", "return [self.statistics(x) for x in batches]", 1),
        ("nn.Module", "pass", "pass", 1),
        ("object", "self.load(points)", "pass", 1),
    ],
)
def test_statistics_of_the_constructor_are_made_once(base: str, made: str, run: str, count: int) -> None:
    assert len(findings(CENTRED.format(base=base, made=made, run=run), "MEM05")) == count


ASKED = """
import torch
from torch import nn


def infer_width(layer, channels):
    x = layer(torch.randn(4, channels, 200, 80))
    return x.transpose(1, 2).flatten(2).size(-1)


class Block({base}):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            layer = nn.Conv2d(3, 3, 3)
            self.layers.append(layer)
            self.width = infer_width(layer, 3)
"""


@pytest.mark.parametrize(("base", "count"), [("nn.Module", 0), ("object", 1)])
def test_a_function_that_only_constructors_of_networks_ask_for_sizes(base: str, count: int) -> None:
    assert len(findings(ASKED.format(base=base), "MEM05")) == count


AVERAGED = """
import torch
from torch import nn


def mean_of(net, loader, sizes):
    net.eval()
    {loop}


class Centred(nn.Module):
    def __init__(self, net, loader, sizes):
        super().__init__()
        self.mean = mean_of(net, loader, sizes)
"""


@pytest.mark.parametrize(
    ("loop", "count"),
    [
        ("return net(torch.randn(4, 3).cuda()).mean(0).cpu()", 0),
        ("return [net(torch.zeros(1, 3, n, n)).shape[1] for n in sizes]", 0),
        ("found = []\n    for n in sizes:\n        found += [net(torch.zeros(1, n)).shape[1]]\n    return found", 0),
        (
            "found = []\n    for x, _ in loader:\n        found.append(net(x.cuda()).mean(0).cpu())\n"
            "    return torch.stack(found)",
            1,
        ),
    ],
)
def test_what_goes_through_batches_for_a_constructor_evaluates(loop: str, count: int) -> None:
    assert len(findings(AVERAGED.format(loop=loop), "MEM05")) == count


ENGINE = """
import torch
from timm.data import Mixup


def train_one_epoch(model: torch.nn.Module, criterion: torch.nn.CrossEntropyLoss, loader, optimizer, device, {scaler}):
    model.eval()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        print(loss.item())
        optimizer.zero_grad()
        {stepped}
"""


@pytest.mark.parametrize(
    ("scaler", "stepped", "count"),
    [
        ("loss_scaler", "loss_scaler(loss, optimizer, clip_grad=1.0)", 0),
        ("scaler", "scaler(loss, optimizer, parameters=model.parameters())", 0),
        ("meter", "meter(loss.item(), optimizer)", 1),
        ("meter", "print(loss.item())", 1),
    ],
)
def test_what_gets_a_loss_and_an_optimizer_trains(scaler: str, stepped: str, count: int) -> None:
    assert len(findings(ENGINE.format(scaler=scaler, stepped=stepped), "MEM05")) == count
