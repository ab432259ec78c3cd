"""A teacher, a student, and three ways in which one learns of the other."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, stand_in
from tests.evidence.piece import Piece, Values


class Small(nn.Module):
    """Gives what the networks of the piece give: logits, the representation before these, and a map of features."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Conv2d(3, 4, 3)
        self.logits = nn.Linear(4 * 6 * 6, 10)

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        features = torch.relu(self.map(pictures))
        representation = features.flatten(1)
        return self.logits(representation), representation, features


def run(checkout: Path) -> Values:
    stand_in("thop")
    train = load(checkout / "2024-02-16", "train")
    teacher, student = Small(), Small()
    data = TensorDataset(torch.rand(48, 3, 8, 8), torch.randint(10, (48,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    options = Namespace(learning_rate=0.01, epoch=2, temperature=2.0, kd_weight=0.3, ce_weight=0.7)
    with inside(checkout) as printed:
        train.train(options, teacher, loader)
        for options.match in ("logit", "representation", "feature_map"):
            train.train_kd(options, teacher, student, loader)
        train.test(student, loader)
    return {"printed": printed.getvalue(), "teacher": teacher, "student": student}


PIECE = Piece(
    repository="KangHoML/VLSI",
    commit="239d59dd63b5530eb59ca23134325946c509024e",
    path="2024-02-16/train.py",
    what="`train`, `test` and `train_kd` for two epochs each, on random pictures",
    run=run,
    lint="2024-02-16",
)
