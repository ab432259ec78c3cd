"""Proximal policy optimisation with an LSTM."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("gym")
    model = load(checkout, "ppo-lstm").PPO()
    hidden = torch.zeros(1, 1, 32), torch.zeros(1, 1, 32)
    for _ in range(4):
        for step in range(20):
            state, following = torch.rand(2, 4).tolist()
            before = hidden
            _, hidden = model.pi(torch.tensor(state), before)
            model.put_data((state, step % 2, float(step % 3), following, 0.4 + 0.01 * step, before, hidden, step == 19))
        model.train_net()
    return {"model": model, "optimizer": model.optimizer}


PIECE = Piece(
    repository="seungeunrho/minimalRL",
    commit="c8efed8481e3cd40e9739cfde220a55522555b57",
    path="ppo-lstm.py",
    what="four calls of `PPO.train_net` on random steps",
    run=run,
    lint="ppo-lstm.py",
)
