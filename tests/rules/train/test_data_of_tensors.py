"""TRAIN10: what shows that the owner of `.data` is a tensor."""

from __future__ import annotations

import pytest

from tests.support import findings

USED = """\
import torch
from torch import nn

class Memory(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.rows = torch.zeros(count, 4)

    @staticmethod
    def scale(batch, low):
        mean = {first}
        return torch.div(batch, mean)

    def keep(self, x, shown, info):
        {second}
"""


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("batch.data.new(1)", "pass", 1),  # it is divided, so the batch is one tensor
        ("low.data.new(1)", "pass", 1),
        ("1.0", "self.rows[2:4].copy_(x.data[:2])", 1),
        ("1.0", "self.keep(x.data[:2])", 0),
        ("1.0", "return x.data.size(0)", 1),
        ("1.0", "return info.data.size(0)", 1),
        ("1.0", "return info.data.size", 0),
        ("1.0", "shown(x[:, 0].data)", 1),
        ("1.0", "shown(x[0].data, x['rows', 0].data)", 0),
    ],
)
def test_what_is_done_with_data_shows_a_tensor(first: str, second: str, count: int) -> None:
    assert len(findings(USED.format(first=first, second=second), "TRAIN10")) == count
