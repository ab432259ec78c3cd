"""A network that enlarges pictures, with its mean loss and signal-to-noise ratio."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from tests.evidence.driving import run_script, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    small, large = torch.rand(24, 1, 16, 16), torch.rand(24, 1, 32, 32)
    pairs = TensorDataset(small, large)
    stand_in("data", get_training_set=lambda scale: pairs, get_test_set=lambda scale: pairs)
    options = ("--upscale_factor", "2", "--batchSize", "4", "--testBatchSize", "5", "--nEpochs", "2", "--threads", "0")
    variables, printed = run_script(checkout / PIECE.path, *options)
    return {"printed": printed, "model": variables["model"]}


PIECE = Piece(
    repository="pytorch/examples",
    commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
    path="super_resolution/main.py",
    what="the script with two epochs on random pictures",
    run=run,
    lint="super_resolution",
)
