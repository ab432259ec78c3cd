"""VEC02: rows that cannot be one batch, since each is brought to a size of its own, or is repeated to a batch."""

from __future__ import annotations

import pytest

from tests.support import findings

RESIZED = """
import torch
from torch.nn import functional as F

def masks(boxes: torch.Tensor, small: torch.Tensor, side: int, height: torch.Tensor):
    boxes = boxes.long().clip(min=0, max=side - 1)
    full = torch.zeros(len(boxes), side, side)
    for i, (b, mask) in enumerate(zip(boxes, small)):
        {line}
        full[i, b[1]: b[3] + 1, b[0]: b[2] + 1] = grown[0, 0]
    return full
"""


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("grown = F.interpolate(mask.view(1, 1, 8, 8), size=(b[3] - b[1] + 1, b[2] - b[0] + 1))", 0),
        ("grown = F.interpolate(mask.view(1, 1, 8, 8), (int(b[3]), int(b[2])))", 0),
        ("grown = F.interpolate(mask.view(1, 1, 8, 8), scale_factor=b[3].item())", 0),
        ("grown = F.interpolate(mask.view(1, 1, 8, 8), size=(side, side))", 1),
        ("grown = F.interpolate(mask.view(1, 1, 8, 8), scale_factor=2)", 1),
    ],
)
def test_rows_of_sizes_of_their_own_are_no_batch(line: str, count: int) -> None:
    assert len(findings(RESIZED.format(line=line), "VEC02")) == count


BESIDE = """
import torch
from torch.nn import functional as F

def resized(maps: torch.Tensor, images{type}):
    maps = F.relu(maps)
    found = []
    for depth, image in zip(maps, images):
        found.append(F.interpolate(depth[None], {size}))
    return found
"""


@pytest.mark.parametrize(
    ("kind", "size", "count"),
    [
        ("", "image.shape[-2:]", 0),
        ("", "size=(image.size(1), image.size(2))", 0),
        (": torch.Tensor", "image.shape[-2:]", 1),
        ("", "depth.shape[-2:]", 1),
        ("", "maps.shape[-2:]", 1),
        ("", "images.shape[-2:]", 1),
    ],
)
def test_rows_that_are_brought_to_the_size_of_something_else_are_no_batch(kind: str, size: str, count: int) -> None:
    assert len(findings(BESIDE.format(type=kind, size=size), "VEC02")) == count


REPEATED = """
import numpy as np
import torch

def likelihoods(rows: torch.Tensor, model: torch.nn.Module, draws: int):
    found = []
    with torch.no_grad():
        for j in range(rows.size(0)):
            row = rows[j].unsqueeze(0)
            row = {row}
            found.append(float(np.mean(model(row).cpu().numpy())))
    return np.array(found)
"""


@pytest.mark.parametrize(
    ("row", "count"),
    [
        ("row.expand(draws, *row.size()[1:]).contiguous()", 0),
        ("row.repeat(draws, 1)", 0),
        ("row.repeat_interleave(draws, dim=0)", 0),
        ("row.expand(-1, 4)", 1),
        ("row.repeat(1, 3)", 1),
        ("row.contiguous()", 1),
    ],
)
def test_a_row_that_is_repeated_is_no_batch_of_one(row: str, count: int) -> None:
    assert len(findings(REPEATED.format(row=row), "VEC02")) == count


PIECES = """\
import torch

def generate(model, signals, size, device):
    with torch.no_grad():
        for signal in signals:
            pieces = torch.stack(list(signal.split(size, dim=-1)), 0)
            out = []
            for piece in pieces:
                out.append(model(piece[None].to(device)))
            yield torch.{joined}.cpu()
"""


@pytest.mark.parametrize(
    ("joined", "count"), [("cat(out, -1)", 0), ("concat(out, dim=2)", 0), ("cat(out)", 1), ("cat(out, dim=0)", 1)]
)
def test_pieces_of_one_signal_are_no_samples(joined: str, count: int) -> None:
    """A network may go on with what it keeps of the piece before."""
    assert len(findings(PIECES.format(joined=joined), "VEC02")) == count
