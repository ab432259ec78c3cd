"""Periodic errors of directions of arrival, over all permutations of the sources."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    criterions = load(checkout, "src.criterions")
    predicted = torch.rand(6, 4, requires_grad=True)
    directions = torch.rand(6, 4)
    values: Values = {}
    for name in ("RMSPELoss", "MSPELoss"):
        loss = getattr(criterions, name)()(predicted, directions)
        values[name] = loss, *torch.autograd.grad(loss, predicted)
    return values


PIECE = Piece(
    repository="ShlezingerLab/SubspaceNet",
    commit="f2ef46423cebf1ee996deb99155138c67b6d28b4",
    path="src/criterions.py",
    what="`RMSPELoss` and `MSPELoss` with their gradients, on random directions",
    run=run,
    lint="src",
)
