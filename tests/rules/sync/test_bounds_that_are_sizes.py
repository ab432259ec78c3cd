"""SYNC05: `max(tensor, 1)` that a size or a slice is made of, which the host needs whoever compares."""

from __future__ import annotations

import pytest

from tests.support import findings

PASTED = """
import torch
from torch.nn import functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Paste(torch.nn.Module):
    def forward(self, masks, boxes, lengths):
        masks = torch.sigmoid(masks)
        boxes, lengths = boxes.to(device).long(), lengths.to(device)
        width = max(boxes[0] - boxes[1], 1)
        {used}
"""


@pytest.mark.parametrize(
    ("used", "count"),
    [
        ("return F.interpolate(masks, size=(4, width))", 0),
        ("return torch.arange(0, width)", 0),
        ("return masks.expand(4, width + 1)", 0),
        ("return masks[:, width:]", 0),
        ("last = width - 1\n        return masks[:last]", 0),
        ("half = int(width) // 2\n        return [masks for _ in range(half)]", 0),
        ("return masks.sum() / width", 1),
        ("return masks[: lengths.numel()] * width", 1),
        ("return masks.clamp(min=width)", 1),
        ("total = masks / width\n        return total[1:]", 1),
    ],
)
def test_what_the_host_needs_is_compared_there(used: str, count: int) -> None:
    assert len(findings(PASTED.format(used=used), "SYNC05")) == count
