"""Calls and indices that make a batch of one row, or of one row many."""

from __future__ import annotations

import math
from collections.abc import Collection

import libcst as cst

from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import integer, is_name, walk

_LEAST = 10  # numbers that one sample has; two are a point, four a box


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
        return is_name(first.value, "None")
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


def has_literal_sizes(node: cst.Call, local: Collection[str]) -> bool:
    """Whether all sizes of a batch are written out, `x.view(-1, 28 * 28)`. Each iteration asks for another `n - 1`; and
    of points and boxes, `x.view(-1, 2)`, each has as many as there are."""
    sizes = [argument.value for argument in node.args[1:]]
    if any(isinstance(part, cst.Name) and part.value in local for size in sizes for part in walk(size)):
        return False
    if any(isinstance(size, cst.BinaryOperation) for size in sizes):
        return all(isinstance(size, (cst.Integer, cst.BinaryOperation)) for size in sizes)
    numbers = [integer(size) for size in sizes]
    return None not in numbers and math.prod(number or 1 for number in numbers) >= _LEAST
