"""Tests that ask whether a variable holds a number yet: a flag of the host could answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import is_name

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_ORDERS = (cst.LessThan, cst.LessThanEqual)


def asks_if_set(comparison: cst.Comparison) -> bool:
    """`mean is None`, which no number is."""
    match comparison.comparisons:
        case [cst.ComparisonTarget(operator=cst.Is() | cst.IsNot(), comparator=cst.Name(value="None"))]:
            return True
    return False


def begins_as_none(model: Model, node: cst.CSTNode) -> bool:
    """Whether a test of a variable asks if it holds a number yet."""
    binding = model.binding(node)
    return binding is not None and any(
        write.kind == "assign" and is_name(write.value, "None") for write in binding.writes
    )


def asks_for_marker(model: Model, comparison: cst.Comparison, node: cst.CSTNode) -> bool:
    """`if mean < 0: mean = loss` of what begins as -1: as long as nothing else is there, it gets a value then."""
    binding = model.binding(node)
    if binding is None or comparison.left is not node or not _sets(model, comparison, binding):
        return False
    begun = {model.value(write.value).constant for write in binding.writes if write.kind == "assign" and write.value}
    match comparison.comparisons:
        case [cst.ComparisonTarget(operator=cst.Equal(), comparator=marker)]:
            return _is_negative(marker_value := model.value(marker).constant) and marker_value in begun
        case [
            cst.ComparisonTarget(operator=operator, comparator=cst.Integer(value="0") | cst.Float(value="0.0" | "0."))
        ]:
            return isinstance(operator, _ORDERS) and any(map(_is_negative, begun))
    return False


def _is_negative(constant: object) -> bool:
    return isinstance(constant, (int, float)) and constant < 0


def _sets(model: Model, test: cst.Comparison, binding: Binding) -> bool:
    """Whether the variable is given a value where a test of it holds, or the test chooses that value."""
    branch = model.parent(test)
    if isinstance(branch, cst.If) and branch.test is test:
        return any(branch.body in model.ancestors(write.target) for write in binding.writes)
    if isinstance(branch, cst.IfExp) and branch.test is test:
        return any(write.statement is model.statement(branch) for write in binding.writes)
    return False
