"""Two vectors added one element at a time, in a notebook."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import run_cells
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    variables, _ = run_cells(checkout / PIECE.path, 7, 9, 11)
    return {name: variables[name] for name in ("a", "b", "c", "d")}


PIECE = Piece(
    repository="dsgiitr/d2l-pytorch",
    commit="e84da49a9ea4ba448f4aaf2d18ecd9edafaa2419",
    path="Ch05_Linear_Neural_Networks/Linear_Regression.ipynb",
    what="the cell with the loop, and the one with the sum that replaces it",
    run=run,
    lint="Ch05_Linear_Neural_Networks",
)
