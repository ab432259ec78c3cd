"""VEC01: rows of what a network returns that is one of several classes."""

from __future__ import annotations

import pytest

from tests.support import findings

AGENT = """
import torch
from torch import nn
from zoo import build


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Linear(4, 1)

    def forward(self, x):
        return self.value(x)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.value = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.value(torch.relu(self.first(x)))


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(4, 1) for _ in range(8)])

    def forward(self, x):
        return [head(x) for head in self.heads]


class Agent:
    def __init__(self, kind, size=64):
        self.size = size
        if kind == "small":
            self.critic = Small()
        else:
            self.critic = {other}

    def learn(self, states, rewards, gamma):
        states = torch.tensor(states).to("cuda")
        rewards = torch.tensor(rewards).to("cuda")
        values = self.critic{call}(states)
        target = []
        for i in range(self.size):
            target.append(rewards[i] + gamma * values[i])
        return torch.tensor(target).to("cuda")
"""


@pytest.mark.parametrize("call", ["", ".forward"])
@pytest.mark.parametrize(
    ("other", "count"), [("Deep()", 1), ('Deep().to("cuda")', 1), ("Several()", 0), ("build(kind)", 0), ("kind", 0)]
)
def test_a_network_that_is_one_of_several_classes(other: str, call: str, count: int) -> None:
    assert len(findings(AGENT.format(other=other, call=call), "VEC01", "VEC02")) == count
