"""LIN01: numbers that are read of each product, and collected for a summary of numpy."""

from __future__ import annotations

import pytest

from tests.support import findings

CODE = """
import numpy as np
import torch

def spread(x):
    x = x.cuda()
    found = [{value} for i in range(len(x)) for j in range(i + 1, len(x))]
    return float(np.mean(found)), {summary}
"""


@pytest.mark.parametrize(
    ("value", "summary", "count"),
    [
        ("torch.dot(x[i], x[j]).item()", "float(np.std(found))", 1),
        ("1.0 - torch.dot(x[i], x[j]).item()", "float(np.std(found))", 1),
        ("2 * (1 - torch.dot(x[i], x[j]).item())", "np.median(found)", 1),
        ("1.0 - torch.dot(x[i], x[j]).item()", "weigh(found)", 1),
        ("weigh(torch.dot(x[i], x[j]).item())", "np.median(found)", 0),
    ],
)
def test_arithmetic_with_numbers_that_are_read(value: str, summary: str, count: int) -> None:
    assert len(findings(CODE.format(value=value, summary=summary), "LIN01")) == count
