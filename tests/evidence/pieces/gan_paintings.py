"""A GAN that learns to draw parabolas."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import run_script
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    variables, printed = run_script(checkout / PIECE.path, replace={"range(10000)": "range(60)"})
    names = ("G", "D", "D_loss", "G_loss", "G_paintings", "prob_artist0", "prob_artist1")
    return {"printed": printed, **{name: variables[name] for name in names}}


PIECE = Piece(
    repository="MorvanZhou/PyTorch-Tutorial",
    commit="dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7",
    path="tutorial-contents/406_GAN.py",
    what="the script with 60 steps instead of 10,000",
    run=run,
    lint="tutorial-contents",
)
