"""Soft actor-critic, with checkpoints."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box

from tests.evidence.driving import inside, load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    sac = load(checkout, "sac")
    options = Namespace(
        gamma=0.99,
        tau=0.005,
        alpha=0.2,
        policy="Gaussian",
        target_update_interval=1,
        automatic_entropy_tuning=True,
        cuda=False,
        hidden_size=8,
        lr=1e-3,
    )
    space = Box(-1.0, 1.0, (2,), np.float32)
    agent, other = sac.SAC(3, space, options), sac.SAC(3, space, options)
    memory = load(checkout, "replay_memory").ReplayMemory(100, 0)
    for _ in range(40):
        memory.push(np.random.randn(3), np.random.randn(2), np.random.randn(), np.random.randn(3), 1.0)
    losses = [agent.update_parameters(memory, 16, update) for update in range(5)]
    with inside(checkout):
        agent.save_checkpoint("env", ckpt_path="checkpoint")
        other.load_checkpoint("checkpoint")
    actions = [other.select_action(np.ones(3), evaluate) for evaluate in (False, True)]
    return {"losses": losses, "actions": actions, "policy": other.policy, "critic": other.critic}


PIECE = Piece(
    repository="pranz24/pytorch-soft-actor-critic",
    commit="c1805660b3961694be54079a355155a5cad492f5",
    path="sac.py",
    what="five updates, actions, and a checkpoint saved and loaded by another agent",
    run=run,
)
