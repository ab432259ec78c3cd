"""MEM04: backward passes that keep a graph which nothing uses again."""

from __future__ import annotations

from pathlib import Path

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

STATEFUL = """
import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.h = None

    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h.sum()


def train(batches):
    model = Tracker()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches:
        optimizer.zero_grad()
        loss = model(x)
        loss.backward(retain_graph=True)
        optimizer.step()
"""


def test_a_module_that_keeps_its_state_needs_the_graph_of_the_last_step() -> None:
    assert findings(STATEFUL, "MEM04") == []


def test_it_does_so_in_a_project_as_well(tmp_path: Path) -> None:
    (tmp_path / "tracker.py").write_text(STATEFUL)
    source = Source.read(tmp_path / "tracker.py")
    assert lint(source, Settings.selecting("MEM04"), strict=True, project=Project()) == []
