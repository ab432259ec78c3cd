"""TIME01: a test of a tensor waits for it, also behind `not` and within `or`; so does a loop that is handed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

CHECKED = """
import time
import torch
from torch import nn

class Prior:
    def __init__(self):
        self.head = nn.Linear(4, 4).to("cuda")
        self.history = []

    @torch.inference_mode()
    def __call__(self, x):
        started = time.perf_counter()
        mean = self.head(x)
        sigma = mean.exp()
        {check}
        self.history.append({{"seconds": time.perf_counter() - started}})
        return mean, sigma
"""


@pytest.mark.parametrize(
    ("check", "count"),
    [
        ("if not torch.isfinite(mean).all() or torch.any(sigma <= 0.0):\n            raise RuntimeError", 0),
        ("if not torch.isfinite(sigma).all():\n            raise RuntimeError", 0),
        ("is_bad = not torch.isfinite(sigma).all()", 0),
        ("is_bad = torch.isfinite(sigma).all() and x is not None", 0),
        ("is_bad = not self.history", 1),
        ("is_bad = torch.logical_not(torch.isfinite(sigma).all())", 1),
    ],
)
def test_the_truth_of_a_tensor_is_waited_for(check: str, count: int) -> None:
    assert len(findings(CHECKED.format(check=check), "TIME01")) == count


TRAINER = """
import torch
from torch import nn
from retries import with_smaller_batches


class Trainer:
    def __init__(self, model: nn.Module, batches):
        self.model = model
        self.batches = batches
        self.optimizer = torch.optim.Adam(model.parameters())

    def train(self):
        run = with_smaller_batches(self._epoch)
        return run()

    def _epoch(self):
        total = torch.zeros((), device="cuda")
        for x, y in self.batches:
            loss = (self.model(x.cuda()) - y.cuda()).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return {end}
"""
TIMED = """
import time
import torch
from torch import nn
from trainer import Trainer


def align(batches, stages):
    model = nn.Linear(4, 4).cuda()
    trainer = Trainer(model, batches)
    for stage in range(stages):
        with torch.no_grad():
            print(model(batches[0][0].cuda()).mean().item())
        start = time.time()
        trainer.train()
        end = time.time()  # here
        print("took", end - start)
"""


@pytest.mark.parametrize("end", ["total.item()", "total"])
def test_a_function_that_is_handed_on_may_wait(end: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "trainer.py").write_text(TRAINER.format(end=end))
    (tmp_path / "main.py").write_text(TIMED)
    settings = Settings.selecting("TIME01")
    found = lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())
    assert [finding.line for finding in found] == ([] if "item" in end else marked(TIMED))
