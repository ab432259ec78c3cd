"""Masks that a loop fills sample by sample, up to a length of its own or from it on."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.support import findings

CODE = """
import numpy as np
import torch


def mask_of(x, lengths, others):
    mask = {mask}
    for {loop}:
{body}
    return mask
"""
LOOP = "i, length in enumerate(lengths)"


def _found(body: str, loop: str = LOOP, mask: str = "torch.zeros(x.size(0), x.size(1))") -> list[str]:
    code = CODE.format(mask=mask, loop=loop, body=indent(body, " " * 8))
    return [finding.message for finding in findings(code, "VEC02")]


@pytest.mark.parametrize(
    ("body", "loop"),
    [
        ("mask[i, :length] = 1", LOOP),
        ("mask[i, length:] = True", LOOP),
        ("mask[i, : int(length) - 1, 2] = float('-inf')", LOOP),
        ("mask[i][:length] = 1", LOOP),
        ("mask[i, :lengths[i]] = 1", "i in range(x.size(0))"),
        ("n = lengths[i].item()\nmask[i, n:].fill_(1)", "i in range(len(lengths))"),
        ("length = length.item()\nif mask[i].size(0) - length > 0:\n    mask[i].narrow(0, 0, length).fill_(1)", LOOP),
        ("n = int(length.detach().cpu().numpy())\nmask[i, :, n:] = True\nmask[i, n:] = True", LOOP),
        ("mask[i, :length] = torch.ones(length)", LOOP),
        ("mask[i, :length] = 1\nmask[i, length:] = -1", LOOP),
        ("mask[i, :first, :second] = 1", "i, (first, second) in enumerate(zip(lengths, others))"),
    ],
)
def test_a_mask_of_lengths_is_one_comparison(body: str, loop: str) -> None:
    (message,) = _found(body, loop)
    assert "arange" in message


@pytest.mark.parametrize(
    "mask", ["torch.zeros_like(x)", "x.data.new(*x.size()).fill_(0)", "torch.zeros(x.shape)", "x.clone().zero_()"]
)
@pytest.mark.parametrize(("part", "count"), [("x[i, :length]", 1), ("x[i, 1:length]", 0), ("others[i, :length]", 0)])
def test_so_much_of_another_tensor_of_the_same_shape_is_picked_by_one_comparison(
    mask: str, part: str, count: int
) -> None:
    assert len(_found(f"mask[i, :length] = {part}", mask=mask)) == count


@pytest.mark.parametrize(
    ("body", "loop", "mask"),
    [
        ("mask[i, :length] = x[i, :length]", LOOP, "torch.zeros(x.size(0), 9)"),  # it pads
        ("mask[i, :length] = x[i, :length]", LOOP, "torch.zeros(*x.size()[:2], 9)"),
        ("mask[i, :length] = others[i]", LOOP, "torch.zeros(x.size(0), 9)"),
        ("mask[i, :length] = i + 1", LOOP, "torch.zeros(x.size(0), 9)"),
        ("mask[i, :length] = 1\nx[i] = others(length)", LOOP, "torch.zeros(x.size(0), 9)"),
        ("mask[i, :length] = 1\nothers[i, :length] = 1", LOOP, "torch.zeros(x.size(0), 9)"),
        ("if length > 3:\n    mask[i, :length] = 1\nelse:\n    print(i)", LOOP, "torch.zeros(x.size(0), 9)"),
        ("if others(i):\n    mask[i, :length] = 1", LOOP, "torch.zeros(x.size(0), 9)"),
        ("mask[i, :int(mask.sum())] = 1", LOOP, "torch.zeros(x.size(0), 9)"),  # of what came before
        ("mask[i, :length] = 1", LOOP, "np.zeros((len(x), 9))"),
        ("mask[i, :length] = 1", LOOP, "[x, x, x]"),
        ("mask[i, :lengths[i]] = 1", "i in range(2)", "torch.zeros(x.size(0), 9)"),
        ("mask[: lengths[i]] = 1", "i in range(x.size(0))", "torch.zeros(x.size(0), 9)"),  # whole rows
        ("mask[length, :i] = 1", LOOP, "torch.zeros(x.size(0), 9)"),
        ("mask[i, :length] = 1", "i, length in lengths.items()", "torch.zeros(x.size(0), 9)"),
    ],
)
def test_other_loops_fill_no_mask(body: str, loop: str, mask: str) -> None:
    assert [message for message in _found(body, loop, mask) if "arange" in message] == []
