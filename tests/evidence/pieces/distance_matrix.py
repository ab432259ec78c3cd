"""Distances of all pairs of points, from dot products that a loop takes one by one."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    utils = load(checkout / "totopos" / "utils", "utils")
    x = torch.randn(30, 6, requires_grad=True)
    y = torch.randn(20, 6, requires_grad=True)
    distances = utils.generalized_distance_matrix_torch(x, y)
    distances.square().mean().backward()
    same = utils.generalized_distance_matrix_torch(x.detach().double().float(), 2 * y.detach())
    return {"distances": distances, "same": same, "x": x.grad, "y": y.grad}


PIECE = Piece(
    repository="binglunshao/totopos",
    commit="fabad87aa8368d6dc698b71e41cd0d8da957b5c4",
    path="totopos/utils/utils.py",
    what="`generalized_distance_matrix_torch` with its gradients, on random points",
    run=run,
    lint="totopos/utils",
)
