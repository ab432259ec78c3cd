"""Sums that a program keeps: under a name in a dict, or by an assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def is_named_sum(model: Model, target: cst.Subscript) -> bool:
    """`sums["hits"]` of `{"hits": 0}`."""
    binding = model.binding(target.value)
    starts = [write.value for write in binding.writes if write.kind == "assign"] if binding is not None else []
    match target.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]:
            name = str(model.value(key).constant)
            begun = [model.value(start).field(name) for start in starts if start is not None]
            return bool(begun) and all(value is not None and value.kind is Kind.NUMBER for value in begun)
    return False


def adds_to(value: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """`sums[k] + number`, which is stored in `sums[k]`."""
    return (
        isinstance(value, cst.BinaryOperation)
        and isinstance(value.operator, cst.Add)
        and any(type(side) is type(target) and side.deep_equals(target) for side in (value.left, value.right))
    )
