"""Training and evaluation of one process of Hogwild."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch
from torch import nn

from tests.evidence.driving import Pictures, inside, load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    module = load(checkout / "mnist_hogwild", "train")
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10), nn.LogSoftmax(dim=1))
    arguments = Namespace(seed=1, lr=0.01, momentum=0.5, epochs=2, log_interval=2, dry_run=False)
    device = torch.device("cpu")
    with inside(checkout) as printed:
        module.train(0, arguments, model, device, Pictures(), {"batch_size": 32, "shuffle": True})
        module.test(arguments, model, device, Pictures(train=False), {"batch_size": 40})
    lines = [line.split("\t", 1)[-1] for line in printed.getvalue().splitlines()]  # each begins with the process id
    return {"printed": lines, "model": model}


PIECE = Piece(
    repository="pytorch/examples",
    commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
    path="mnist_hogwild/train.py",
    what="`train` and `test` for two epochs on random pictures",
    run=run,
    lint="mnist_hogwild",
)
