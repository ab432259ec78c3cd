"""An LSTM that predicts the next word of a text."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.evidence.driving import run_script, without_times
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    words = np.array(["a", "of", "the", "net", "loss", "step", "graph", "tensor"])
    texts = checkout / "texts"
    texts.mkdir(exist_ok=True)
    for part in ("train", "valid", "test"):
        lines = (" ".join(np.random.choice(words, 12)) for _ in range(60))
        (texts / f"{part}.txt").write_text("\n".join(lines))
    options = (
        "--emsize",
        "8",
        "--nhid",
        "8",
        "--epochs",
        "2",
        "--bptt",
        "7",
        "--batch_size",
        "5",
        "--log-interval",
        "5",
    )
    variables, printed = run_script(checkout / PIECE.path, "--data", str(texts), *options)
    return {"printed": without_times(printed), "model": variables["model"], "best": variables["best_val_loss"]}


PIECE = Piece(
    repository="pytorch/examples",
    commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
    path="word_language_model/main.py",
    what="the script with two epochs on random words",
    run=run,
    lint="word_language_model",
)
