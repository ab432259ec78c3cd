"""A training script that empties the cache in its loop, and an evaluation after it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import run_script, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Dropout(), nn.Linear(4 * 6 * 6, 10))
    data = TensorDataset(torch.rand(40, 3, 8, 8), torch.randint(10, (40,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)  # torchlint: ignore[DATA02] all of it is on the CPU
    stand_in("data", train_loader=loader, valid_loader=loader, device=torch.device("cpu"))
    settings = {"num_epochs": 2, "num_classes": 10, "batch_size": 8, "learning_rate": 0.01}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stand_in("hyperparameters", model=model, criterion=nn.CrossEntropyLoss(), optimizer=optimizer, **settings)
    variables, printed = run_script(checkout / PIECE.path)
    return {"printed": printed, "model": model, "correct": variables["correct"]}


PIECE = Piece(
    repository="LeoMcBills/100_days-ML",
    commit="6dc43fd2d001934ab7f5b0db1f4188352e1dc11d",
    path="models/train.py",
    what="the script with two epochs on random pictures",
    run=run,
    lint="models/train.py",
)
