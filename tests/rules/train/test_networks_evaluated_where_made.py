"""TRAIN04: a function that makes a network, and calls `eval()` on it, hands it on in evaluation mode."""

from __future__ import annotations

import pytest

from tests.support import findings

NETWORK = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.rnn(x)[0])
"""

PROGRAM = """
class Debugger:
    def run(self, loaders):
        net = self.{name}()
        if net is None:
            return
        for test_loader in loaders.values():
            self.collect(net, test_loader)

    def {name}(self):
        try:
            net = Net().to("cuda")
            {switch}
            return net
        except OSError:
            return None

    def collect(self, net, test_loader):
        found = []
        with torch.no_grad():
            for batch in test_loader:
                x = batch["x"].to("cuda")
                for i in range(x.shape[0]):
                    found.append(net(x[i : i + 1]).cpu().numpy())
        return found
"""


@pytest.mark.parametrize("name", ["_load_net", "_make", "prepared"])
@pytest.mark.parametrize(
    ("switch", "count"),
    [("net.eval()", 0), ("pass", 1), ("net.eval()\n            net.train()", 1)],
    ids=["evaluates", "leaves it", "trains on"],
)
def test_a_network_is_handed_on_as_it_was_left(name: str, switch: str, count: int) -> None:
    assert len(findings(NETWORK + PROGRAM.format(name=name, switch=switch), "TRAIN04")) == count


BUILT = """
def build(path):
    encoder = Net()
    encoder.load_state_dict(torch.load(path))
    encoder.eval()
    {rest}

def run(test_loader):
    net = build("encoder.pt").cuda()
    with torch.no_grad():
        for x, y in test_loader:
            print((net(x).argmax(1) == y).sum())
"""


@pytest.mark.parametrize(
    ("rest", "count"),
    [
        ("net = nn.Sequential(nn.Dropout(0.2))\n    net.encoder = encoder\n    return net", 1),
        ("net = nn.Sequential(nn.Dropout(0.2))\n    return net.eval()", 0),
        ("return encoder", 0),
    ],
)
def test_a_part_in_evaluation_mode_is_not_the_whole(rest: str, count: int) -> None:
    assert len(findings(NETWORK + BUILT.format(rest=rest), "TRAIN04")) == count
