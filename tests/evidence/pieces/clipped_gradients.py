"""Gradients clipped by value, with their norm."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tests.evidence.driving import load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    for name in ("librosa.filters", "audio_processing", "stft"):
        stand_in(name)
    commons = load(checkout, "commons")
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))
    (100 * model(torch.randn(8, 20)).square().mean()).backward()
    norms = [commons.clip_grad_value_(model.parameters(), value) for value in (5.0, 0.5)]
    return {"norms": norms, "gradients": [parameter.grad for parameter in model.parameters()]}


PIECE = Piece(
    repository="jaywalnut310/glow-tts",
    commit="13e997689d643410f5d9f1f9a73877ae85e19bc2",
    path="commons.py",
    what="`clip_grad_value_` over the gradients of a network",
    run=run,
    lint="commons.py",
)
