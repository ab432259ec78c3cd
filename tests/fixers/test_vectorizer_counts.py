"""The loop vectoriser where a loop may run no round at all: a count below nothing counts no rows from the end."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.fixers.generated import offered

HEAD = """\
import torch


def f(x: torch.Tensor, n: int):
    out = torch.zeros(4, 2)
"""
LOOPS = {
    "all": "for i in range(n):\n    out[i] = x[i] * 2",
    "from the second on": "for i in range(1, n):\n    out[i] = x[i] * 2",
    "the next": "for i in range(n):\n    out[i] = x[i + 1] * 2",
    "of the one before": "for i in range(1, n):\n    out[i] = x[i - 1] * 2",
    "into the next": "for i in range(n):\n    out[i + 1] = x[i + 1] * 2",
    "all but the last": "for i in range(n - 1):\n    out[i] = x[i + 1] - x[i]",
    "of a name for it": "m = n - 1\nfor i in range(m):\n    out[i] = x[i + 1] * x[i]",
    "rows and columns": "for i in range(n):\n    for j in range(n - 1):\n        out[i, j] = x[i, j] * 2",
    "chosen": "out = x * 0\nfor i in range(n):\n    if x[i].sum() > 1:\n        out[i] = x[i] * 2",
    "added": "for i in range(n):\n    out[0] += x[i] * 2",
    "a length or less": "n = len(x) if n > 1 else n\nfor i in range(n):\n    out[i] = x[i] * 2",
    "of its own rows": "x = x[:max(n, 0)]\nfor i in range(len(x) - 2):\n    out[i] = x[i + 2] - x[i]",
    "numbers of its own rows": "x = x[:max(n, 0)]\nfor i in range(len(x) - 1):\n    out[i] = (x[i + 1] - x[i]) * i",
}


def called(code: str, n: int | torch.Tensor) -> torch.Tensor:
    names: dict[str, Any] = {}
    exec(code, names)
    result = names["f"](torch.arange(8.0).view(4, 2).cos(), n)
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize("loop", LOOPS)
def test_no_row_is_touched_where_the_loop_does_not_run(loop: str) -> None:
    code = HEAD + "".join(f"    {line}\n" for line in LOOPS[loop].splitlines()) + "    return out\n"
    new = offered(code)
    if loop not in ("added", "numbers of its own rows"):
        assert "for " not in new
    for n in (2, 1, 0, -1, -2, -3, -9):
        assert torch.allclose(called(code, n), called(new, n)), f"{n}:\n{new}"


def test_a_number_at_the_end_of_a_count_is_reckoned_with() -> None:
    loop = "    m = len(x) - 1\n    for i in range(m - 1):\n        out[i] = x[i].sum() + y[i + 1].sum()\n"
    code = HEAD.replace("n: int", "y: torch.Tensor").replace("4, 2", "len(x)") + loop + "    return out\n"
    new = offered(code)
    assert "y[1: max(m, 1)]" in new, new
    y = torch.rand(4, 2)
    assert torch.equal(called(code, y), called(new, y))
