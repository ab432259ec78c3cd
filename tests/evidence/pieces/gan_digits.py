"""A GAN of digits in a notebook, which keeps its samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tests.evidence.driving import Pictures, run_cells, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision(MNIST=Pictures)
    variables, printed = run_cells(
        checkout / PIECE.path,
        2,
        7,
        9,
        11,
        13,
        15,
        17,
        19,
        replace={"num_epochs = 100": "num_epochs = 2", "print_every = 400": "print_every = 2"},
        np=np,
        torch=torch,
    )
    names = ("D", "G", "losses", "samples")
    return {"printed": printed, **{name: variables[name] for name in names}}


PIECE = Piece(
    repository="udacity/deep-learning-v2-pytorch",
    commit="c9404fc86181fc3f0906b368697268257f348535",
    path="gan-mnist/MNIST_GAN_Solution.ipynb",
    what="the cells that define and train, with two epochs on random pictures",
    run=run,
    lint="gan-mnist",
)
