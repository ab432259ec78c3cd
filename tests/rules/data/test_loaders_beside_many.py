"""DATA01 and DATA03: workers that are to stay, or a number of them, are not for each of a hundred loaders."""

from __future__ import annotations

import pytest

from tests.support import findings

CLIENTS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import ImageFolder

device = torch.device("cuda")
model = nn.Linear(2, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images = ImageFolder("images")

class Client:
    def __init__(self, part):
        self.loader = DataLoader(Subset(images, part){workers})

    def train(self, epochs):
        for epoch in range(epochs):
            for x, y in self.loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
                optimizer.step()

{made}
for client in clients:
    client.train(5)
"""
MADE = [
    ("clients = [Client(range(i, 5000, 100)) for i in range(100)]", True),
    ("clients = []\nfor i in range(100):\n    clients.append(Client(range(i, 5000, 100)))", True),
    ("clients = [Client(range(i, 5000, 2)) for i in range(2)]", False),
    ("clients = [Client(range(5000))]", False),
]


@pytest.mark.parametrize(("made", "are_many"), MADE)
def test_workers_of_many_loaders_do_not_stay(made: str, are_many: bool) -> None:
    assert len(findings(CLIENTS.format(workers=", num_workers=4", made=made), "DATA03")) == (not are_many)


@pytest.mark.parametrize(("made", "are_many"), MADE)
def test_how_many_workers_each_of_many_loaders_has_is_left_open(made: str, are_many: bool) -> None:
    (found,) = findings(CLIENTS.format(workers="", made=made), "DATA01")
    assert (found.fix is None) == are_many
