"""A convolutional network on digits: training, and an evaluation that counts."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import Pictures, run_script, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision(MNIST=Pictures)
    variables, printed = run_script(
        checkout / PIECE.path,
        "--epochs",
        "1",
        "--batch-size",
        "32",
        "--test-batch-size",
        "40",
        replace={"def main():": "def main():\n    global model"},
    )
    return {"printed": printed, "model": variables["model"]}


PIECE = Piece(
    repository="pytorch/examples",
    commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
    path="mnist/main.py",
    what="the script with one epoch on random pictures",
    run=run,
    lint="mnist",
)
