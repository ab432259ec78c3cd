"""MEM04: what an object keeps in a list may go backward in another of its methods."""

from __future__ import annotations

import pytest

from tests.support import findings

PLAYER = """
import torch
from torch import nn
from torch.distributions import Categorical

class Player:
    def __init__(self, make):
        self.net = {net}
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.log_probs = []

    def choose(self, x):
        chosen = Categorical({probs})
        action = chosen.sample()
        log_prob = chosen.log_prob(action)
        self.learn_at_once(log_prob, 1.0)
        {kept}
        return action

    def learn_at_once(self, log_prob, reward):
        loss = -log_prob * reward
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        self.optimizer.step()

    def learn(self):
        loss = -torch.stack(self.log_probs).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("net", "probs"),
    [("nn.Linear(4, 4)", "torch.softmax(self.net(x), dim=-1)"), ("make()", "self.net.judge(x)[0]")],
    ids=["a layer", "out of sight"],
)
@pytest.mark.parametrize(
    ("kept", "count"),
    [
        ("self.log_probs.append(log_prob)", 0),
        ("self.log_probs.extend([log_prob])", 0),
        ("self.log_probs.append(log_prob.item())", 1),
        ("self.log_probs.append(action)", 1),
    ],
)
def test_a_list_of_an_object_keeps_the_graph(kept: str, count: int, net: str, probs: str) -> None:
    assert len(findings(PLAYER.format(kept=kept, net=net, probs=probs), "MEM04")) == count


@pytest.mark.parametrize(
    ("before", "step", "count"),
    [
        ("h = torch.zeros(1, 8)", "h = cell(x, h)", 0),
        ("h = torch.zeros(1, 8)", "out, h = cell(x, h)", 0),
        ("h = torch.zeros(1, 8)", "h = cell(x, h.detach())", 1),
        ("pass", "h = cell(x)", 1),
        ("h = 0", "h = h + 1 - 1\n        h = cell(x)", 1),
    ],
)
def test_a_function_out_of_sight_may_hand_a_state_from_step_to_step(before: str, step: str, count: int) -> None:
    code = f"""
import torch
from cells import cell

def train(batches, optimizer):
    {before}
    for x in batches:
        {step}
        loss = h.pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""
    assert len(findings(code, "MEM04")) == count
