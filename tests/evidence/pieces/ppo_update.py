"""Proximal policy optimisation: two updates from random rollouts."""

from __future__ import annotations

from pathlib import Path

from gymnasium.spaces import Discrete

from tests.evidence.driving import load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    for name in ("gym", "gym.spaces.box", "gym.wrappers.clip_action", "stable_baselines3"):
        stand_in(name)
    load(checkout, "a2c_ppo_acktr")
    stand_in("a2c_ppo_acktr.envs", VecNormalize=None)
    algorithm = load(checkout, "a2c_ppo_acktr.algo.ppo")
    space = Discrete(4)
    policy = load(checkout, "a2c_ppo_acktr.model").Policy((6,), space)
    rollouts = load(checkout, "a2c_ppo_acktr.storage").RolloutStorage(16, 4, (6,), space, 1)
    for part in (rollouts.obs, rollouts.rewards, rollouts.value_preds, rollouts.returns, rollouts.action_log_probs):
        part.normal_()
    rollouts.actions.random_(4)
    agent = algorithm.PPO(policy, 0.2, 3, 4, 0.5, 0.01, lr=1e-3, eps=1e-5, max_grad_norm=0.5)
    return {"losses": [agent.update(rollouts) for _ in range(2)], "policy": policy}


PIECE = Piece(
    repository="ikostrikov/pytorch-a2c-ppo-acktr-gail",
    commit="41332b78dfb50321c29bade65f9d244387f68a60",
    path="a2c_ppo_acktr/algo/ppo.py",
    what="two calls of `PPO.update` on random rollouts",
    run=run,
    lint="a2c_ppo_acktr",
)
