"""A discriminator of expert and policy, with a gradient penalty."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import torch
from gymnasium.spaces import Box
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    for name in ("h5py", "gym", "stable_baselines3"):
        stand_in(name)
    stand_in(
        "stable_baselines3.common.running_mean_std",
        RunningMeanStd=lambda shape: SimpleNamespace(update=list, var=[1.0]),
    )
    load(checkout, "a2c_ppo_acktr")
    stand_in("a2c_ppo_acktr.envs", VecNormalize=None)
    gail = load(checkout, "a2c_ppo_acktr.algo.gail")
    rollouts = load(checkout, "a2c_ppo_acktr.storage").RolloutStorage(16, 4, (6,), Box(-1, 1, (2,)), 1)
    rollouts.obs.normal_()
    rollouts.actions.normal_()
    expert = DataLoader(TensorDataset(torch.randn(64, 6), torch.randn(64, 2)), batch_size=16, shuffle=True)
    discriminator = gail.Discriminator(8, 16, torch.device("cpu"))
    losses = [discriminator.update(expert, rollouts, lambda state, update: state) for _ in range(2)]
    reward = discriminator.predict_reward(torch.randn(5, 6), torch.randn(5, 2), 0.99, torch.ones(5, 1))
    return {"losses": losses, "discriminator": discriminator, "reward": reward}


PIECE = Piece(
    repository="ikostrikov/pytorch-a2c-ppo-acktr-gail",
    commit="41332b78dfb50321c29bade65f9d244387f68a60",
    path="a2c_ppo_acktr/algo/gail.py",
    what="two calls of `Discriminator.update` and the rewards after it, on random trajectories",
    run=run,
    lint="a2c_ppo_acktr",
)
