"""SYNC04 asks for a place, a graph or a number: what code out of sight returns may be a text, or lie on the host."""

from __future__ import annotations

import pytest

from tests.support import findings

SHOWN = """
import torch
from nets import encoded

def train(model: torch.nn.Module, optimizer, prompts):
    for prompt in prompts:
        answer = model(prompt)
        mask = encoded(prompt)
        loss = answer.mean()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        loss.backward()
        optimizer.step()
        {shown}

torch.ones(3).cuda()
"""


@pytest.mark.parametrize(
    ("shown", "count"),
    [
        ('print(f"{loss}")', 1),
        ('print(f"{answer}")', 0),
        ('print(f"{answer:.3f}")', 1),
        ('print("%.3f" % answer)', 1),
        ('print("{:.3f}".format(norm))', 1),
        ('writer.add_scalar("norm", norm, 0)', 1),
        ('print(f"{torch.count_nonzero(mask)}")', 0),
    ],
)
def test_what_is_shown_in_each_step(shown: str, count: int) -> None:
    assert len(findings(SHOWN.format(shown=shown), "SYNC04")) == count
