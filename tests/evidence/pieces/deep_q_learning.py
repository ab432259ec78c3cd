"""Deep Q learning with a target network and a memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium

from tests.evidence.driving import run_script, stand_in
from tests.evidence.piece import Piece, Values


class Cart:
    """A cart with a pole, called the way of gym before 0.26."""

    def __init__(self, name: str) -> None:
        self.inner: Any = gymnasium.make("CartPole-v1").unwrapped
        self.started = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def unwrapped(self) -> Cart:
        return self

    def reset(self) -> Any:
        seed, self.started = (None if self.started else 0), True
        return self.inner.reset(seed=seed)[0]

    def step(self, action: Any) -> tuple[Any, ...]:
        state, reward, done, _, info = self.inner.step(int(action))
        return state, reward, done, info

    def render(self) -> None:
        """There is nothing to see."""


def run(checkout: Path) -> Values:
    vars(stand_in("gym")).update(make=Cart, wrappers=SimpleNamespace())
    short = {"memory_capacity = 2000": "memory_capacity = 100", "range(300)": "range(20)"}
    variables, printed = run_script(checkout / PIECE.path, replace=short)
    trainer = variables["dqn_trainer"]
    return {
        "printed": printed,
        "eval_net": trainer.eval_net,
        "target_net": trainer.target_net,
        "optimizer": trainer.optimizer,
        "memory": trainer.memory,
        "rewards": variables["all_reward"],
    }


PIECE = Piece(
    repository="L1aoXingyu/code-of-learn-deep-learning-with-pytorch",
    commit="ea24810dc26265e85e3eec34e1d091d21202d800",
    path="chapter7_RL/dqn.py",
    what="the script with 20 episodes and a memory of 100 steps",
    run=run,
    lint="chapter7_RL",
)
