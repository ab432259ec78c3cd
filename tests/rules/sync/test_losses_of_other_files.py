"""SYNC07: losses that ask for the label of each row, which the step of another file has moved to the device."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

LOSS = """
    import torch
    from torch import nn

    WEIGHTS = {1: 0.5, 2: 1.5}

    class Weighted(nn.Module):
        def forward(self, scores, labels):
            total = 0
            for i in range(len(scores)):
                total = total + WEIGHTS.get(labels[i].item(), 1.0) * scores[i].sum()
            return total
"""
TRAINING = """
    import torch
    from torch.utils.data import DataLoader
    from losses import Weighted

    def train(model, batches: DataLoader, optimizer, device="cuda"):
        criterion = Weighted(){moved}
        for batch in batches:
            images, labels = {batch}
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def lines_of(path: Path, training: str) -> list[int]:
    (path / "pyproject.toml").touch()
    (path / "train.py").write_text(dedent(training))
    (path / "losses.py").write_text(dedent(LOSS).lstrip())
    settings = Settings.selecting("SYNC07")
    found = lint(Source.read(path / "losses.py"), settings, strict=True, project=Project())
    return [finding.line for finding in found]


@pytest.mark.parametrize("moved", ["", ".to(device)"])
@pytest.mark.parametrize(
    ("batch", "lines"),
    [
        ("batch['image'].to(device), batch['label'].to(device)", [10]),
        ("batch[0].cuda(), batch[1].cuda()", [10]),
        ("batch['image'].to(device), batch['label']", []),
        ("batch['image'].to(device), batch['label'].cpu()", []),
        ("batch['image'].to(device), [label.to(device) for label in batch['label']]", []),
    ],
)
def test_labels_that_the_loss_of_another_file_asks_one_by_one(
    tmp_path: Path, batch: str, lines: list[int], moved: str
) -> None:
    assert lines_of(tmp_path, TRAINING.format(batch=batch, moved=moved)) == lines


def test_a_loss_that_nobody_calls(tmp_path: Path) -> None:
    assert not lines_of(tmp_path, "import torch\nfrom losses import Weighted\n\ncriterion = Weighted()\n")
