"""The supervised contrastive loss, with labels and without."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    losses = load(checkout, "losses")
    features = torch.nn.functional.normalize(torch.randn(8, 2, 16), dim=2).requires_grad_()
    labels = torch.randint(3, (8,))
    values: Values = {}
    for mode in ("all", "one"):
        for given in (None, labels):
            loss = losses.SupConLoss(contrast_mode=mode)(features, given)
            values[f"{mode} {given is not None}"] = loss, *torch.autograd.grad(loss, features)
    return values


PIECE = Piece(
    repository="HobbitLong/SupContrast",
    commit="66a8fe53880d6a1084b2e4e0db0a019024d6d41a",
    path="losses.py",
    what="`SupConLoss` with its gradients, in both modes, on random features",
    run=run,
)
