"""The trainer of a diffusion model, which zeroes gradients by hand."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tests.evidence.driving import load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    util = load(checkout, "guided_diffusion.fp16_util")
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
    trainer = util.MixedPrecisionTrainer(model=model)
    optimizer = torch.optim.AdamW(trainer.master_params, lr=1e-2)
    losses = []
    for _ in range(5):
        trainer.zero_grad()
        losses.append(model(torch.randn(4, 3, 8, 8)).square().mean())
        trainer.backward(losses[-1])
        trainer.optimize(optimizer)
    state = trainer.master_params_to_state_dict(trainer.master_params)
    return {"losses": losses, "state": state, "gradients": [parameter.grad for parameter in model.parameters()]}


PIECE = Piece(
    repository="openai/guided-diffusion",
    commit="22e0df8183507e13a7813f8d38d51b072ca1e67c",
    path="guided_diffusion/fp16_util.py",
    what="`MixedPrecisionTrainer` in single precision, five steps",
    run=run,
    lint="guided_diffusion",
)
