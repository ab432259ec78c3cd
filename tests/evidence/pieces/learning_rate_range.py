"""The range test of learning rates, with gradients accumulated."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    finder = load(checkout, "torch_lr_finder.lr_finder")
    loader = DataLoader(TensorDataset(torch.randn(60, 6), torch.randint(3, (60,))), batch_size=5, shuffle=True)
    values: Values = {}
    for accumulation in (1, 3):
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        test = finder.LRFinder(model, optimizer, nn.CrossEntropyLoss(), device="cpu")
        with inside(checkout):
            test.range_test(loader, val_loader=loader, end_lr=1, num_iter=8, accumulation_steps=accumulation)
        values[str(accumulation)] = {"history": test.history, "model": model.state_dict(), "best": test.best_loss}
    return values


PIECE = Piece(
    repository="davidtvs/pytorch-lr-finder",
    commit="76df3050c5554d698cb618e792957873bc878b30",
    path="torch_lr_finder/lr_finder.py",
    what="`LRFinder.range_test` with three batches per step, and `reset`, on random data",
    run=run,
    lint="torch_lr_finder",
)
