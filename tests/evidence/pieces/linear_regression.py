"""Linear regression from scratch, with gradients that a loop fills with zeros."""

from __future__ import annotations

import random
from pathlib import Path

import torch

from tests.evidence.driving import run_cells
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    cells = (3, 9, 11, 13, 15, 17, 19, 21, 23, 25)
    variables, printed = run_cells(checkout / PIECE.path, *cells, random=random, torch=torch)
    return {"printed": printed, "w": variables["w"], "b": variables["b"], "loss": variables["train_l"]}


PIECE = Piece(
    repository="dsgiitr/d2l-pytorch",
    commit="e84da49a9ea4ba448f4aaf2d18ecd9edafaa2419",
    path="Ch05_Linear_Neural_Networks/Linear_Regression_Implementation_from_Scratch.ipynb",
    what="the cells that make the data, define and train",
    run=run,
    lint="Ch05_Linear_Neural_Networks",
)
