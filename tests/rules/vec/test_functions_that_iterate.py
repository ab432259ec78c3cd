"""VEC02: functions that go over a row again and again."""

from __future__ import annotations

import pytest

from tests.support import findings

CODE = """
import torch

def settled(matrix, row):
    found = torch.zeros(4)
    for _ in range(100):
        found = torch.linalg.inv(matrix) @ row + 0.5 * found
        {end}
    return found

def main(matrix: torch.Tensor, count):
    rows = torch.randn(count, 4)
    out = torch.zeros(count, 4)
    for i in range(count):
        out[i] = settled(matrix, rows[i])
    return out
"""


@pytest.mark.parametrize(("end", "count"), [("found = found / 2", 1), ("if found.norm() < 1e-3: break", 0)])
def test_rows_that_each_end_when_they_have_settled_are_no_batch(end: str, count: int) -> None:
    assert len(findings(CODE.format(end=end), "VEC02")) == count
