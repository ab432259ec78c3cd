"""Two networks, one with batch normalisation, fitted to a noisy parabola."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import run_script
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    variables, printed = run_script(checkout / PIECE.path, replace={"EPOCH = 12": "EPOCH = 1"})
    return {"printed": printed, **{name: variables[name] for name in ("nets", "losses", "preds")}}


PIECE = Piece(
    repository="MorvanZhou/PyTorch-Tutorial",
    commit="dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7",
    path="tutorial-contents/504_batch_normalization.py",
    what="the script with one epoch instead of 12",
    run=run,
    lint="tutorial-contents",
)
