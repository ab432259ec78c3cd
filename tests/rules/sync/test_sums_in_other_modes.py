"""SYNC01: a sum that grows in inference mode and out of it, and one that only others read."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.support import fixed

MODES = """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def evaluate(model: nn.Module, loader: torch.utils.data.DataLoader, others: torch.utils.data.DataLoader):
    model.eval()
    total = 0.0
    with {first}:
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            total += nn.functional.cross_entropy(model(x), y).item()
    with {second}:
        for x, y in others:
            x, y = x.to(device), y.to(device)
            total += nn.functional.cross_entropy(model(x), y).item()
    return total
"""


@pytest.mark.parametrize("first", ["torch.inference_mode()", "torch.no_grad()"])
@pytest.mark.parametrize("second", ["torch.inference_mode()", "torch.no_grad()"])
def test_a_sum_does_not_grow_as_a_tensor_in_and_out_of_inference_mode(first: str, second: str) -> None:
    code = MODES.format(first=first, second=second)
    new = fixed(code, "SYNC01", unsafe=False)
    assert (new != code) == (first == second)
    model, batches = torch.nn.Linear(3, 2), [(torch.ones(4, 3), torch.tensor([0, 1, 0, 1]))] * 3
    names: dict[str, Any] = {}
    exec(code, names)
    before = names["evaluate"](model, batches, batches)
    exec(new, names)
    assert names["evaluate"](model, batches, batches) == before


@pytest.mark.parametrize("reading", ["", "print(total)\n"])
def test_a_sum_of_a_program_that_nothing_in_it_reads_is_there_for_others(reading: str) -> None:
    code = MODES.partition("def ")[0] + (
        "model = nn.Linear(3, 2).to(device)\n"
        "loader = torch.utils.data.DataLoader([torch.ones(3)] * 8, 4)\n"
        "total = 0.0\n"
        "for x in loader:\n"
        "    loss = model(x.to(device)).mean()\n"
        "    loss.backward()\n"
        "    total += loss.item()\n"
    )
    assert (fixed(code + reading, "SYNC01", unsafe=False) != code + reading) == bool(reading)
