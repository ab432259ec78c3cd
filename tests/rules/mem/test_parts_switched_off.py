"""MEM01, MEM05, MEM09: modules of other files that switch their parameters off by themselves, or have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mem.projects import linted
from tests.support import findings

NETWORKS = """
import torch
from itertools import chain
from torch import nn

class Scales(nn.ModuleList):
    def __init__(self):
        super().__init__([nn.Conv2d(n, 1, 1, bias=False) for n in (4, 8)])
        for weight in self.parameters():
            weight.requires_grad = False

class Base(nn.Module):
    def switch(self, on):
        for tensor in chain(self.parameters(), self.buffers()):
            tensor.requires_grad = on

    def forward(self, x):
        return [self.layers(x), self.layers(x)]

class Small(Base):
    def __init__(self):
        super().__init__()
        self.layers = nn.Conv2d(3, 4, 3)
        self.switch({on})

class Large(Base):
    def __init__(self):
        super().__init__()
        self.layers = nn.Conv2d(3, 8, 3)
        self.switch(False)

def network(kind):
    if kind == "large":
        return Large()
    return Small()
"""
SIMILARITY = """
import torch
from networks import Scales, network
from torch import nn

class Similarity(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.net = network(kind)
        self.scales = Scales()

    def forward(self, x, y):
        distances = [scale(a - b).mean((2, 3)) for a, b, scale in zip(self.net(x), self.net(y), self.scales)]
        return torch.sum(torch.cat(distances, 0), 0)
"""
COMPARED = """
import torch
from similarity import Similarity
from torch.utils.data import DataLoader

similarity = Similarity("small").cuda()

def evaluate(loader: DataLoader):
    found = []
    for shown, meant in loader:
        found.append(similarity(shown.cuda(), meant.cuda()))
    print(torch.stack(found).mean().item())
"""


@pytest.mark.parametrize(("on", "codes"), [("False", []), ("True", ["MEM05", "MEM01"])])
def test_parts_may_switch_their_own_parameters_off(tmp_path: Path, on: str, codes: list[str]) -> None:
    networks = NETWORKS.replace("{on}", on)
    found = linted(tmp_path, "MEM01", "MEM05", networks=networks, similarity=SIMILARITY, main=COMPARED)
    assert [finding.code for finding in found] == codes


def test_a_constructor_that_names_none_of_its_parameters(tmp_path: Path) -> None:
    own = "class Log:\n    def on(self, on):\n        pass\n\nlog = Log()\n\nclass Small(Base):\n"
    networks = NETWORKS.replace("{on}", "True").replace("class Small(Base):\n", own)
    networks = networks.replace(
        "def __init__(self):\n        super().__init__()\n        self.layers = nn.Conv2d(3, 4,",
        "def __init__(*own):\n        log.on(False)\n        self = own[0]\n        self.layers = nn.Conv2d(3, 4,",
    )
    found = linted(tmp_path, "MEM01", "MEM05", networks=networks, similarity=SIMILARITY, main=COMPARED)
    assert [finding.code for finding in found] == ["MEM05", "MEM01"]


TARGET = """
import torch
from torch import nn

class Target(nn.Module):
    def __init__(self, width=torch.tensor(6.0)):
        super().__init__()
        self.register_buffer("width", width)

    def density(self, x):
        raise NotImplementedError

    def sample(self, count):
        x = self.width * (torch.rand(count, 2) - 0.5)
        return x[self.density(x) > torch.rand(count)]

class Both(Target):
    def __init__(self, one, other):
        super().__init__()
        self.one, self.other = one, other
        self.split = nn.Linear(2, 4)

    def density(self, x):
        return self.one.density(self.split(x)[:, :2]) + self.other.density(self.split(x)[:, 2:])

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(2, 1)

    def density(self, x):
        z = x
        for _ in range(2):
            z = self.layers(z)
        return z.mean()

class Moons(Target):
    def __init__(self):
        super().__init__()
        {made}

    def density(self, x):
        return {density}
"""
FITTED = """
import torch
from target import Flow, Moons
from torch import nn

target = Moons()
flow = Flow().cuda()
optimizer = torch.optim.Adam(flow.parameters())
for step in range(100):
    optimizer.zero_grad()
    x = target.sample(64).cuda()
    loss = -flow.density(x)
    if ~torch.isnan(loss):
        loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "density", "count"),
    [
        ("self.height = 1.0", "torch.exp(-x.square().sum(1)) * self.height", 0),
        ("self.net = nn.Linear(2, 1)", "self.net(x).squeeze(1)", 1),
    ],
)
def test_a_method_of_a_module_without_a_forward_pass(tmp_path: Path, made: str, density: str, count: int) -> None:
    target = TARGET.replace("{made}", made).replace("{density}", density)
    assert len(linted(tmp_path, "MEM05", "MEM09", target=target, main=FITTED)) == count


EPOCHS = """
import torch

def switch_grad(network, on):
    for weight in network.parameters():
        weight.requires_grad = on

def train_epoch(network, optimizer, loader):
    network.train()
    switch_grad(network, True)
    for x in loader:
        optimizer.zero_grad()
        network(x.cuda()).mean().backward()
        optimizer.step()
    network.eval()
    {end}

def pictures(network, n):
    shown = []
    for _ in range(n):
        shown.append(network(torch.randn(64, 8).cuda()).detach())
    return torch.cat(shown)

def run(network, optimizer, loader, epochs):
    network.cuda()
    for epoch in range(epochs):
        train_epoch(network, optimizer, loader)
        print(pictures(network, 100).mean())
"""


@pytest.mark.parametrize(
    ("end", "count"),
    [
        ("switch_grad(network, False)", 0),
        ("pass", 1),
        ("switch_grad(network, True)", 1),
        ("if len(loader) > 3:\n        switch_grad(network, False)", 1),
    ],
)
def test_an_epoch_that_ends_by_switching_the_network_off_leaves_it_off(end: str, count: int) -> None:
    found = findings(EPOCHS.format(end=end), "MEM05")
    assert len(found) == count
