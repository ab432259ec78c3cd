"""Variables that count the iterations of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model


def asks_for_first(model: Model, test: cst.BaseExpression, loops: Iterable[Loop]) -> bool:
    """`i == 0` in the first iteration of one of the loops and in no other: nothing else in it writes the counter."""
    match test:
        case cst.Comparison(
            left=cst.Name() as asked, comparisons=[cst.ComparisonTarget(cst.Equal(), cst.Integer("0"))]
        ):
            binding = model.binding(asked)
        case _:
            return False
    writes = binding.writes if binding is not None else ()
    return any(
        [write.target for write in writes if loop.holds(write.loop)] == [counter]
        for loop in loops
        if (counter := counter_from_zero(model, loop)) is not None
    )


def counter_from_zero(model: Model, loop: Loop) -> cst.Name | None:
    """`i` of `for i, x in enumerate(xs)` and of `for i in range(n)`."""
    if not isinstance(loop.iterable, cst.Call):
        return None
    match model.call(loop.iterable).callee, loop.iterable.args, loop.target:
        case "builtins.enumerate", [cst.Arg(star="")], cst.Tuple(elements=[cst.Element(cst.Name() as counter), *_]):
            return counter
        case "builtins.range", [cst.Arg(star="")] | [cst.Arg(cst.Integer("0")), *_], cst.Name() as counter:
            return counter
    return None
