"""Measurements of a radio channel and what they say of it, per carrier."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import run_functions, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("neuralop.models")
    functions = run_functions(checkout / PIECE.path, "compute_GL_GR", "generate_measurement", "compute_R")
    transmit, receive = torch.randn(3, 5, dtype=torch.complex64), torch.randn(4, 6, dtype=torch.complex64)
    left, right = functions["compute_GL_GR"](transmit, receive)
    measured = functions["generate_measurement"](torch.randn(2, 4, 3, 7, 2), transmit, receive, 0.1)
    return {"left": left, "right": right, "measured": measured, "R": functions["compute_R"](measured, left, right)}


PIECE = Piece(
    repository="Dilogarithm/Neural-Operators-For-Channel-Estimation-",
    commit="f504f2b428f32b00502003e1adcc1a75a3b53624",
    path="MastersThesis/mmWaveMIMO/evaluate_sft_fno_R.py",
    what="`compute_GL_GR`, `generate_measurement` and `compute_R` on random channels",
    run=run,
    lint="MastersThesis/mmWaveMIMO",
)
