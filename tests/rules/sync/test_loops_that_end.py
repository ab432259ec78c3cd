"""What a loop does before it breaks off is done once, also in the functions that it calls there."""

from __future__ import annotations

import pytest

from tests.support import findings

TRAINER = """
import torch
from torch import nn


class Trainer:
    def __init__(self, model, batches, valid, last):
        self.model, self.batches, self.valid, self.last = model.cuda(), batches, valid, last
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)

    def train(self):
        step = 0
        while step <= self.last:
            for x, y in self.batches:
                step += 1
                if step > self.last:
                    {end}
                loss = nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if step % 100 == 0:
                    self.validate()
                {each}

    def validate(self):
        total = 0
        with torch.no_grad():
            for x, y in self.valid:
                total += nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
        print(f"{{total:.4f}}")
"""
STEP = "\n                    "


@pytest.mark.parametrize(
    ("end", "each", "count"),
    [
        (f"self.validate(){STEP}break", "pass", 0),
        (f"self.validate(){STEP}return", "pass", 0),
        (f"print(torch.ones(1).cuda().mean()){STEP}break", "pass", 0),
        ("self.validate()", "pass", 1),
        (f"for _ in range(3):{STEP}    self.validate(){STEP}    break", "pass", 1),
        ("break", "self.validate()", 1),
        ("pass", "print(loss)", 1),
    ],
)
def test_what_is_done_before_a_break_is_done_once(end: str, each: str, count: int) -> None:
    assert len(findings(TRAINER.format(end=end, each=each), "SYNC04")) == count
