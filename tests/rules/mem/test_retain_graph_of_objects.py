"""MEM04: the losses that an object computes of what it holds have one graph behind them."""

from __future__ import annotations

import pytest

from tests.support import findings

ROLLOUTS = """
import torch
from rollouts import learner, sample

def train(env, policy, critic, optimizer, steps):
    for step in range(steps):
        rollout = sample(env, policy, critic)
        loss = rollout.objective({given})
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        {before}
        value = {value}
        learner.value_update(value)
"""


@pytest.mark.parametrize(
    ("given", "before", "value", "count"),
    [
        ("", "pass", "rollout.value_loss()", 0),
        ("use_baseline=True", "pass", "rollout.value_loss()", 0),
        ("use_baseline=True", "rollout = sample(env, policy, critic)", "rollout.value_loss()", 1),
        ("use_baseline=True", "other = sample(env, policy, critic)", "other.value_loss()", 1),
        ("use_baseline=True", "pass", "rollout.rewards.numpy()", 1),
    ],
)
def test_another_loss_of_what_is_held_needs_the_graph(given: str, before: str, value: str, count: int) -> None:
    assert len(findings(ROLLOUTS.format(given=given, before=before, value=value), "MEM04")) == count
