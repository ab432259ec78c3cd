"""What the model believes of an expression, held against what the expression was."""

from __future__ import annotations

from typing import Any

from tests.beliefs.instrumented import Fact
from torchlint.semantics.values import Grad, Kind, Value

_KINDS = {
    Kind.NONE: ("none",),
    Kind.NUMBER: ("number",),
    Kind.STRING: ("string",),
    Kind.TENSOR: ("tensor",),
    Kind.ARRAY: ("array", "number"),  # numpy's own numbers are either
    Kind.LIST: ("list",),
    Kind.TUPLE: ("tuple",),
    Kind.DICT: ("dict", "other"),
    Kind.MODULE: ("module",),
    Kind.OPTIMIZER: ("optimizer", "other"),
    Kind.DEVICE: ("device", "string", "number", "none"),
    Kind.DTYPE: ("dtype",),
    Kind.CLASS: ("class",),
}


def contradiction(value: Value, fact: Fact) -> str | None:
    """What of the belief is false; None if nothing is."""
    if value.kind not in _KINDS or (value.optional and fact[0] in ("none", "number")):
        return None
    if fact[0] not in _KINDS[value.kind]:
        return f"a {value.kind.value}, and it is a {' '.join(map(str, fact[:2]))}"
    match fact:
        case ("tensor", rank, dtype, requires_grad):
            return _of_tensor(value, rank, dtype, requires_grad)
        case ("number" | "string", constant):
            return _of_constant(value, constant)
        case ("list" | "tuple", length, parts):
            return _of_parts(value, length, parts)
    return None


def _of_tensor(value: Value, rank: int, dtype: str, requires_grad: bool) -> str | None:
    if value.rank is not None and value.rank != rank:
        return f"of rank {value.rank}, and it is of rank {rank}"
    if value.dtype is not None and value.dtype != dtype:
        return f"of {value.dtype}, and it is of {dtype}"
    if value.grad is Grad.DETACHED and requires_grad:
        return "without a graph, and it has one"
    return None


def _of_constant(value: Value, constant: Any) -> str | None:
    if value.constant is not None and constant is not None and value.constant != constant:
        return f"{value.constant!r}, and it is {constant!r}"
    known = {"int": (int,), "float": (int, float), "bool": (bool, int), "complex": (int, float, complex)}
    if isinstance(value.dtype, str) and value.kind is Kind.NUMBER and not isinstance(constant, known[value.dtype]):
        return f"of {value.dtype}, and it is {constant!r}"
    return None


def _of_parts(value: Value, length: int, parts: tuple[Fact, ...]) -> str | None:
    if value.items is not None and len(value.items) != length:
        return f"of {len(value.items)} parts, and it has {length}"
    for position, part in enumerate(parts):
        believed = value.items[position] if value.items is not None else value.element
        found = contradiction(believed, part) if believed is not None else None
        if found is not None:
            return f"with part {position} {found}"
    return None
