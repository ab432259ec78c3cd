"""MEM10: what a loop over layers has listed is as short as the network is deep."""

from __future__ import annotations

import pytest

from tests.support import findings

LEVELS = """
import torch
import torch.nn.functional as F
from torch import nn


class Head(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(size, size, 1) for size in sizes)

    def forward(self, images, parts):
        levels = []
        for {over}:
            levels.append({level})
        for {round}:
            part = F.interpolate({part}, size=(64, 64))
            if {begins}:
                joined = part
            else:
                joined = torch.cat((joined, part), dim=1)
        return joined
"""
INDEXED = {"round": "i in range(0, len(levels))", "part": "levels[i]", "begins": "i == 0"}
ITERATED = {"round": "i, level in enumerate(levels)", "part": "level", "begins": "i == 0"}


@pytest.mark.parametrize("through", [INDEXED, ITERATED])
@pytest.mark.parametrize(
    ("over", "level", "count"),
    [
        ("layer in self.layers", "layer(images)", 0),
        ("i, layer in enumerate(self.layers)", "layer(images[i])", 0),
        ("image in images", "self.layers[0](image)", 1),
        ("part in parts", "part * images", 1),
    ],
)
def test_outputs_of_layers_are_few(through: dict[str, str], over: str, level: str, count: int) -> None:
    assert len(findings(LEVELS.format(over=over, level=level, **through), "MEM10")) == count
