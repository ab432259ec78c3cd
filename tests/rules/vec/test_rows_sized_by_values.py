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


WARPED = """
import torch
from torch import nn

warp = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1)).cuda().eval()


@torch.no_grad()
def warped(frames: torch.Tensor, first: torch.Tensor, last: torch.Tensor, count: int):
    found = []
    for b in range(len(frames)):
        image = frames[b, 0][None]
        for t in range({start}, {end}):
            {step}
        found.append(image[0])
    return torch.stack(found)
"""


@pytest.mark.parametrize(
    ("start", "end", "step", "count"),
    [
        ("first[b].item()", "last[b].item()", "image = warp(image + frames[b, t])", 0),
        ("0", "last[b].item()", "image = warp(image + frames[b, t])", 0),
        ("0", "count", "image = warp(image + frames[b, t])", 1),
        ("0", "last[b].item()", "found.append(warp(frames[b, t][None])[0])", 1),
    ],
)
def test_a_sample_that_goes_through_a_network_as_often_as_it_says(start: str, end: str, step: str, count: int) -> None:
    assert len(findings(WARPED.format(start=start, end=end, step=step), "VEC02")) == count
