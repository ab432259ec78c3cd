"""A Transformer trained on one sentence, and its greedy decoding."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import run_script
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    variables, printed = run_script(checkout / PIECE.path)
    names = ("model", "loss", "outputs", "enc_self_attns", "greedy_dec_input", "predict")
    return {"printed": printed, **{name: variables[name] for name in names}}


PIECE = Piece(
    repository="graykode/nlp-tutorial",
    commit="d05e31ec81d56d70c1db89b99ab07e948f7ebc11",
    path="5-1.Transformer/Transformer(Greedy_decoder).py",
    what="the script as it is",
    run=run,
    lint="5-1.Transformer",
)
