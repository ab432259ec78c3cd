"""MEM01, MEM02: graphs that go into what a base in another file has made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mem.projects import linted

BASE = """
class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.losses = []

    def after_step(self):
        {after}
"""
TASK = """
from torch import nn
from {package} import Trainer

class Task(Trainer):
    {variable}
    def step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.losses.append(loss)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("package", "after", "variable", "count"),
    [
        ("base", "pass", "", 1),
        ("base", "print(self.losses)", "", 1),
        ("base", "self.losses.clear()", "", 0),
        ("base", "self.losses = []", "", 0),
        ("elsewhere", "pass", "", 0),
        ("elsewhere", "pass", "losses = []", 1),
    ],
)
def test_a_base_may_begin_a_list_anew_in_every_step(
    tmp_path: Path, package: str, after: str, variable: str, count: int
) -> None:
    main = TASK.format(package=package, variable=variable)
    assert len(linted(tmp_path, "MEM01", "MEM02", base=BASE.format(after=after), main=main)) == count
