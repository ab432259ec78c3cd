"""MEM10: a tensor that grows once, when a module is built, costs nothing that anybody waits for."""

from __future__ import annotations

import pytest

from tests.support import findings

TABLE = """
import torch
from torch import nn


class Degrees({base}):
    def __init__(self, degrees):
        super().__init__()
        self.degrees = degrees
        {made}

    def table(self, count):
        found = torch.tensor([]).long()
        for resolution in range(count):
            for degree in range(self.degrees):
                found = torch.cat([found, torch.arange(-degree, degree + 1)], dim=0)
        return found

    def forward(self, x):
        {run}
        return x * self.places
"""


@pytest.mark.parametrize(
    ("base", "made", "run", "count"),
    [
        ("nn.Module", "self.places = self.table(degrees)", "pass", 0),
        ("nn.Module", "self.places = self.table(degrees)", "x = x * self.table(x.size(0))", 1),
        ("nn.Module", "self.places = 3", "self.places = self.table(x.size(0))", 1),
        ("object", "self.places = self.table(degrees)", "pass", 1),
    ],
)
def test_what_only_the_constructor_of_a_module_runs(base: str, made: str, run: str, count: int) -> None:
    assert len(findings(TABLE.format(base=base, made=made, run=run), "MEM10")) == count
