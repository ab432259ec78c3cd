"""Calls and indices that make a batch of one row, or of one row many."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.dataflow import text


def makes_batch(node: cst.Call, method: str, first: int) -> bool:
    """`x.unsqueeze(0)`, `x.view(1, ...)`: a batch of one row."""
    arguments = node.args[first:]
    if not arguments or arguments[0].star:
        return False
    value = arguments[0].value
    if method == "unsqueeze":
        return isinstance(value, cst.Integer) and value.value == "0"
    return method in ("view", "reshape", "expand") and isinstance(value, cst.Integer) and value.value == "1"


def adds_batch(node: cst.Subscript) -> bool:
    """`x[i][None]`, `x[i : i + 1]`: a batch of one row."""
    first = node.slice[0].slice
    if isinstance(first, cst.Index):
        return isinstance(first.value, cst.Name) and first.value.value == "None"
    upper = first.upper if isinstance(first, cst.Slice) else None
    if not isinstance(upper, cst.BinaryOperation) or not isinstance(upper.operator, cst.Add):
        return False
    return isinstance(upper.right, cst.Integer) and upper.right.value == "1"


def repeats_batch(node: cst.Call) -> bool:
    """`row.expand(n, 3)`, `row.repeat(n, 1)`: of a batch of one, one of n."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="expand" | "repeat" | "tile")), args=[first, *_]):
            return text(first.value) not in ("1", "-1")
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="repeat_interleave"))):
            return True
    return False
