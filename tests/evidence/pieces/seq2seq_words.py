"""An encoder and decoder that learn six pairs of words."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import run_script
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    variables, printed = run_script(checkout / PIECE.path, replace={"range(5000)": "range(200)"})
    return {"printed": printed, "model": variables["model"], "loss": variables["loss"]}


PIECE = Piece(
    repository="graykode/nlp-tutorial",
    commit="d05e31ec81d56d70c1db89b99ab07e948f7ebc11",
    path="4-1.Seq2Seq/Seq2Seq.py",
    what="the script with 200 epochs instead of 5,000",
    run=run,
    lint="4-1.Seq2Seq",
)
