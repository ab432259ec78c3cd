"""SYNC01: a program that asks for no GPU has none to wait for."""

from __future__ import annotations

import pytest

from tests.support import findings

TUNED = """
import ray
import torch
from ray import tune
from torch import nn
from batches import Batches

class Trainer:
    def __init__(self, data):
        self.net = nn.Linear(4, 1)
        self.loader = Batches(data)
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)

    def train(self):
        losses = []
        for batch in self.loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.net(batch[0]), batch[1])
            losses.append(loss.detach().item())
            loss.backward()
            self.optimizer.step()
        return losses

tune.run(tune.with_resources(Trainer, {resources}))
"""


@pytest.mark.parametrize(
    ("resources", "count"),
    [('{"cpu": 1, "gpu": 0}', 0), ("{'cpu': 1, 'gpu': 0}", 0), ('{"cpu": 1, "gpu": 0.5}', 1), ('{"gpu": 1}', 1)],
)
def test_what_is_asked_for(resources: str, count: int) -> None:
    assert len(findings(TUNED.replace("{resources}", resources), "SYNC01")) == count
