"""A temporal convolutional network that reads digits pixel by pixel."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import Pictures, run_script, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision(MNIST=Pictures)
    options = ("--cuda", "--epochs", "1", "--batch_size", "25", "--levels", "2", "--nhid", "4", "--log-interval", "3")
    variables, printed = run_script(checkout / PIECE.path, *options, "--permute", "--clip", "1")
    return {"printed": printed, "model": variables["model"], "steps": variables["steps"]}


PIECE = Piece(
    repository="locuslab/TCN",
    commit="2f8c2b817050206397458dfd1f5a25ce8a32fe65",
    path="TCN/mnist_pixel/pmnist_test.py",
    what="the script with one epoch on random pictures",
    run=run,
    lint="TCN",
)
