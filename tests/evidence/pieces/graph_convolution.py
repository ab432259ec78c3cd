"""A graph convolution network on a small random citation graph."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load, run_script, without_times
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    utils = load(checkout, "pygcn.utils")
    features = torch.rand(300, 40)
    labels = torch.randint(5, (300,))
    edges = (torch.rand(300, 300) < 0.02).float() + torch.eye(300)
    adjacency = (edges / edges.sum(1, keepdim=True)).to_sparse()
    parts = torch.arange(100), torch.arange(100, 200), torch.arange(200, 300)
    utils.load_data = lambda: (adjacency, features, labels, *parts)
    variables, printed = run_script(checkout / PIECE.path, "--epochs", "20")
    return {"printed": without_times(printed), "model": variables["model"]}


PIECE = Piece(
    repository="tkipf/pygcn",
    commit="1600b5b748b3976413d1e307540ccc62605b4d6d",
    path="pygcn/train.py",
    what="the script with 20 epochs on a random graph",
    run=run,
)
