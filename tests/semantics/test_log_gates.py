"""Code that runs at intervals, to report."""

from __future__ import annotations

import pytest

from tests.semantics.programs import model_of


@pytest.mark.parametrize(
    ("condition", "gated"),
    [
        ("if step % 10 == 0:", True),
        ("if step % 1 == 0:", False),
        ("if step % 1 == 0 and step % 10 == 0:", True),
        ("if args.log_interval and ready:", True),
        ("if rank == 0:", False),
        ("if x is not None:", False),
        ("if training:", False),
        ("if step == 0 and epoch == 0:", True),
        ("if step == last:", True),
        ("if part == last:", False),
    ],
)
def test_log_gates(condition: str, gated: bool) -> None:
    model = model_of(f"import torch\nfor step in range(9):\n    {condition}\n        print(loss)\n")
    call = next(call for call in model.calls if call.callee == "builtins.print")
    assert model.is_log_gated(call.node) is gated


def test_a_skip_at_the_top_of_the_loop_gates_what_follows() -> None:
    model = model_of("import torch\nfor i in range(9):\n    if i % 5:\n        continue\n    print(loss)\n")
    assert model.is_log_gated(next(c.node for c in model.calls if c.callee == "builtins.print"))
