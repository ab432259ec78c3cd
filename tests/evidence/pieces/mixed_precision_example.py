"""A convolutional network with mixed precision, which is off on the CPU."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import Pictures, run_script, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision(MNIST=Pictures)
    narrow = {"=420": "=4", "=1000": "=6", "1000 * 7": "6 * 7"}
    variables, printed = run_script(checkout / PIECE.path, replace=narrow)
    return {"printed": printed, "model": variables["model"], "loss": variables["loss"]}


PIECE = Piece(
    repository="AladdinPerzon/Machine-Learning-Collection",
    commit="fa6ab9161ef62dfef90d2ae48c20b2af1255744a",
    path="ML/Pytorch/Basics/pytorch_mixed_precision_example.py",
    what="the script with narrow layers, on random pictures",
    run=run,
    lint="ML/Pytorch/Basics/pytorch_mixed_precision_example.py",
)
