"""Soft actor-critic for discrete actions."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    agent = load(checkout, "agent").SAC(4, 3, torch.device("cpu"))
    losses = []
    for step in range(6):
        states, following = torch.randn(2, 16, 4)
        experiences = states, torch.randint(3, (16, 1)), torch.randn(16, 1), following, torch.zeros(16, 1)
        losses.append(agent.learn(step, experiences, 0.99))
    return {"losses": losses, "agent": agent}


PIECE = Piece(
    repository="BY571/SAC_discrete",
    commit="d3403e784df073dd0af94b5c01513b95d4c67e20",
    path="agent.py",
    what="six calls of `SAC.learn` on random steps",
    run=run,
)
