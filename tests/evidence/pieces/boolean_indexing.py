"""Positive elements of a matrix are doubled one by one, in a notebook."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import run_cells
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    values: Values = {}
    for cell in (75, 76):
        variables, _ = run_cells(checkout / PIECE.path, cell, t=torch)
        values[str(cell)] = variables["a"]
    return values


PIECE = Piece(
    repository="chenyuntc/pytorch-book",
    commit="688951721d11cd3f92440801e1b68b65ae2e439f",
    path="Chapter6/chapter6.ipynb",
    what="the cell with the loop, and the one with the mask that replaces it",
    run=run,
    lint="Chapter6/chapter6.ipynb",
)
