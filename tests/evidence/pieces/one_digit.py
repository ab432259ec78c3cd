"""A network that tells one digit from the others, with its counts of loss and right answers."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from tests.evidence.driving import run_script, without_times
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    data = checkout / "competition"
    for part in ("val", "test", "final"):
        (data / "results" / part).mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 500), ("val", 250), ("test_alumnes", 50)):
        pictures = {"images": np.random.rand(count, 28, 28), "labels": np.random.randint(10, size=count)}
        np.save(data / f"{name}.npy", np.array(pictures, dtype=object))
    variables, printed = run_script(checkout / PIECE.path, "--target_class", "3", "--epochs", "3")
    results = sorted((data / "results").rglob("*.pkl"))
    return {
        "printed": without_times(printed),
        "model": variables["model"],
        "files": {path.name: pickle.loads(path.read_bytes()) for path in results},
    }


PIECE = Piece(
    repository="DataUAB/Pytorch-Mnist-done-wrong",
    commit="0d762883739cd64185b9748c19ccd8748188c51e",
    path="Practica_3.py",
    what="the script, 3 epochs on random pictures",
    run=run,
)
