"""SYNC03: tensors that a step makes on the host to fill them with what is on the device."""

from __future__ import annotations

import pytest

from tests.support import findings

LOSS = """
import torch
from torch import nn


class BoxLoss(nn.Module):
    def overlap(self, a, b):
        return (torch.min(a[:, 2:], b[:, 2:]) - torch.max(a[:, :2], b[:, :2])).clamp(min=0).prod(1)

    def forward(self, out, truth):
        found = out[truth[..., 4] > 0].view(-1, 4)
        best = torch.zeros(found.size(0)).cuda()
        for i in range(0, found.size(0), 2):
            rows = found[i : i + 2]
            {make}
            {fill}
            shared = self.overlap(boxes, boxes)
            {use}
        return best.sum()
"""
MAKE, FILL = "boxes = torch.FloatTensor(rows.size())", "boxes[:, :2] = rows[:, :2] - rows[:, 2:]"
USE = "best[i] = shared.max(0)[0].cuda()"


@pytest.mark.parametrize(
    ("make", "fill", "use", "count"),
    [
        (MAKE, FILL, USE, 1),
        ("boxes = torch.zeros(2, 4)", FILL, USE, 1),
        (MAKE, FILL, "best[i + shared.max(0)[1]] = 1", 1),
        ("boxes = torch.zeros(2, 4, device=rows.device)", FILL, USE, 0),
        ("boxes = torch.zeros_like(rows)", FILL, USE, 0),
        (MAKE, "boxes[:, :2] = torch.rand(2, 2)", USE, 0),
        (MAKE, "boxes[:, :2] = self.anchors.cpu()", USE, 0),
        (MAKE, FILL, "save(shared)", 0),  # the host wants it
        (MAKE, FILL, "shared.max(0)", 0),
        (MAKE, FILL + "; save(boxes)", USE, 0),
    ],
)
def test_a_tensor_of_the_host_that_takes_rows_of_the_device(make: str, fill: str, use: str, count: int) -> None:
    found = findings(LOSS.format(make=make, fill=fill, use=use), "SYNC03")
    assert ["make the tensor on it" in each.message for each in found] == [True] * count


def test_a_tensor_of_the_host_that_gathers_what_each_iteration_finds_is_silent() -> None:
    code = LOSS.format(make="pass", fill=FILL.replace("[:, :2] =", "[i : i + 2, :2] ="), use=USE)
    code = code.replace("        for i", "        boxes = torch.zeros(found.size())\n        for i")
    assert findings(code, "SYNC03") == []
