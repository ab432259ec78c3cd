"""VEC01, VEC06: a function that makes something of a size that it reads from a row makes something else of each."""

from __future__ import annotations

import pytest

from tests.support import findings

PASTED = """
import torch
from torch.nn import functional as F


def paste(mask, box, length, height):
    width = {width}
    width = max(width, 1)
    {made}
    out = torch.zeros((height, height), device=mask.device)
    out[:4] = part
    return out


def all_of(masks: torch.Tensor, boxes: torch.Tensor, lengths: torch.Tensor, height: int):
    masks = torch.sigmoid(masks)
    return torch.stack([paste(m, b, n, height) for m, b, n in zip(masks, boxes.long(), lengths.long())])
"""
RESIZED = "part = F.interpolate(mask[None], size=(4, width))[0]"


@pytest.mark.parametrize(
    ("width", "made", "count"),
    [
        ("int(box[2] - box[0])", RESIZED, 0),
        ("int(box[2])", "part = mask[:width].sum(0)", 0),
        ("length.item()", RESIZED, 0),
        ("int(height / 2)", RESIZED, 1),
        ("height", RESIZED, 1),
        ("int(box[2])", "part = mask[:4] * width", 1),
    ],
)
def test_what_each_row_gives_another_size_stays_apart(width: str, made: str, count: int) -> None:
    assert len(findings(PASTED.format(width=width, made=made), "VEC06")) == count
