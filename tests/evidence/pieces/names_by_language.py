"""A recurrent network that tells the language of a name, in a notebook: its use and its confusion matrix."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

from tests.evidence.driving import run_cells
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    names = {"Letters": ["abcd", "efgh"], "Vowels": ["aeiou", "ouie"], "Others": ["Xyz", "bcdfg"]}
    plots = MagicMock()
    variables, printed = run_cells(
        checkout / PIECE.path,
        4,
        9,
        10,
        11,
        13,
        15,
        17,
        19,
        22,
        24,
        36,
        39,
        replace={"n_confusion = 10000": "n_confusion = 60"},
        category_lines=names,
        all_categories=list(names),
        n_categories=len(names),
        plt=plots,
        ticker=plots,
    )
    return {"printed": printed, **{name: variables[name] for name in ("rnn", "output", "confusion")}}


PIECE = Piece(
    repository="spro/practical-pytorch",
    commit="c520c52e68e945d88fff563dba1c028b6ec0197b",
    path="char-rnn-classification/char-rnn-classification.ipynb",
    what="the cells that do not train (those read `loss.data[0]`), with names of ours",
    run=run,
    lint="char-rnn-classification",
)
