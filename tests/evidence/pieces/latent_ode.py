"""A latent differential equation fitted to spirals."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import load, run_script
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    load(checkout, "torchdiffeq")
    variables, printed = run_script(checkout / PIECE.path, "--niters", "3", replace={"nspiral = 1000": "nspiral = 12"})
    names = ("func", "rec", "dec", "loss", "pred_x")
    return {"printed": printed, **{name: variables[name] for name in names}}


PIECE = Piece(
    repository="rtqichen/torchdiffeq",
    commit="657943acefa826ef04c025ebeb1ff5e9d60dc268",
    path="examples/latent_ode.py",
    what="the script with three steps and 12 spirals",
    run=run,
    lint="examples",
)
