"""A graph attention network on a small random graph."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load, run_script, without_times
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    utils = load(checkout, "utils")
    features = torch.rand(60, 12)
    labels = torch.randint(4, (60,))
    adjacency = (torch.rand(60, 60) < 0.1).float() + torch.eye(60)
    parts = torch.arange(20), torch.arange(20, 40), torch.arange(40, 60)
    utils.load_data = lambda: (adjacency, features, labels, *parts)
    variables, printed = run_script(checkout / PIECE.path, "--epochs", "12", "--nb_heads", "2")
    return {"printed": without_times(printed), "model": variables["model"], "losses": variables["loss_values"]}


PIECE = Piece(
    repository="Diego999/pyGAT",
    commit="3664f2dc90cbf971564c0bf186dc794f12446d0c",
    path="train.py",
    what="the script with 12 epochs on a random graph",
    run=run,
)
