"""A step of trust region policy optimisation: L-BFGS for the critic, conjugate gradients for the policy."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("gym")
    trpo = load(checkout, "core.trpo")
    torch.set_default_dtype(torch.float64)
    policy = load(checkout, "models.mlp_policy").Policy(3, 2, (8,))
    value = load(checkout, "models.mlp_critic").Value(3, (8,))
    states, actions = torch.randn(20, 3), torch.randn(20, 2)
    steps = [
        trpo.trpo_step(policy, value, states, actions, torch.randn(20, 1), torch.randn(20, 1), 0.01, 0.1, 1e-3, fim)
        for fim in (True, False)
    ]
    return {"steps": steps, "policy": policy, "value": value}


PIECE = Piece(
    repository="Khrylx/PyTorch-RL",
    commit="72069237b4d86bcb9675b899ea94228019a4f003",
    path="core/trpo.py",
    what="two calls of `trpo_step` on random steps",
    run=run,
)
