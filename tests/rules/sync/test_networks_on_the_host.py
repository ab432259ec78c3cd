"""SYNC01: evaluations of networks that a function moves to the host, or makes there, beside a training on a GPU."""

from __future__ import annotations

import pytest

from tests.support import findings

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


def evaluate(net, batches):
    {made}
    net.eval()
    total = 0
    with torch.no_grad():
        for x, y in batches:
            total += F.cross_entropy(net({x}), y).item()
    {after}
    return total


def train(batches):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
    print(evaluate(net, batches))
"""


@pytest.mark.parametrize(
    ("made", "x", "after", "count"),
    [
        ("pass", "x", "pass", 1),
        ("net.cpu()", "x", "pass", 0),
        ("net.to('cpu')", "x", "pass", 0),
        ("net = net.to('cpu')", "x", "pass", 0),
        ("device = torch.device('cpu'); net.to(device)", "x.to(device)", "pass", 0),
        ("net = Net()", "x", "pass", 0),
        ("pass", "x", "net.cpu()", 1),
        ("net.cpu(); net.cuda()", "x.cuda()", "pass", 1),
        ("if len(batches) > 9: net.cpu()", "x", "pass", 1),
        ("other = Net().cpu()", "x", "pass", 1),
    ],
)
def test_an_evaluation_of_a_network_on_the_host(made: str, x: str, after: str, count: int) -> None:
    assert len(findings(PROGRAM.format(made=made, x=x, after=after), "SYNC01")) == count


TRUTH = """
import torch
from torch import nn
from torch.utils.data import DataLoader

def evaluate(model, device, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data in loader:
            images, labels = data[0].to(device), data[1].to(device)
            guess = model(images).argmax(1)
            correct += (guess == labels).sum().item()
    return correct

net = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
print(evaluate(net, torch.device("{device}"), DataLoader(images, 8)))
"""


@pytest.mark.parametrize(("device", "count"), [("cpu", 0), ("cuda", 1)])
def test_a_guess_is_where_the_truth_is(device: str, count: int) -> None:
    assert len(findings(TRUTH.format(device=device), "SYNC06")) == count
