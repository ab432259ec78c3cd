"""A variational autoencoder of digits."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import Pictures, run_script, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision(MNIST=Pictures)
    variables, printed = run_script(checkout / PIECE.path, "--epochs", "2", "--batch-size", "50")
    return {"printed": printed, "model": variables["model"], "sample": variables["sample"]}


PIECE = Piece(
    repository="pytorch/examples",
    commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
    path="vae/main.py",
    what="the script with two epochs on random pictures",
    run=run,
    lint="vae",
)
