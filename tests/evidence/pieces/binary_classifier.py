"""A network fitted to random labels behind a fixed classifier."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from tests.evidence.driving import inside, load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    fit = load(checkout, "homework.fit")
    model = nn.Sequential(nn.Linear(1024, 8), nn.ReLU(), nn.Linear(8, 1024))
    with inside(checkout) as printed:
        accuracy = fit.fit_binary_classifier(model, steps=40)
    return {"accuracy": accuracy, "model": model, "printed": printed.getvalue()}


PIECE = Piece(
    repository="kris8386/adl-hw1",
    commit="a2d925448f1a13a0a1fde8cdc8769a9df0164e44",
    path="homework/fit.py",
    what="`fit_binary_classifier` for 40 steps",
    run=run,
    lint="homework",
)
