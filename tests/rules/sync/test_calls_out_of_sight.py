"""Numbers of what code out of sight makes of tensors that a loop has moved to the device."""

from __future__ import annotations

import pytest

from tests.support import findings

LOOP = """
    import torch

    def score(network, loader, table, use_gpu):
        total = 0.0
        for batch in loader:
            x, names = batch["x"], batch["names"]
            if use_gpu:
                {move}
            {line}
        return total
"""


@pytest.mark.parametrize(
    ("move", "line", "lines"),
    [
        ("x = x.cuda()", "total += network.batch_loss(x, 3).item()", [9]),
        ("x = x.cuda()", "loss = network.batch_loss(x); total += loss.item()", [9]),
        ("pass", "total += network.batch_loss(x, 3).item()", []),
        ("x = x.cuda()", "total += table.lookup(names).item()", []),
        ("x = x.cuda()", "total += float(network.batch_loss(x))", []),  # which may be a number
        ("x = x.cuda()", "total += network.to_numpy(x).item()", []),
    ],
)
def test_the_number_of_what_is_made_of_moved_tensors(move: str, line: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(LOOP.format(move=move, line=line), "SYNC01")] == lines
