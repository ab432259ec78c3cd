"""Tests that ask whether a variable holds a number yet: a flag of the host could answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import is_name

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


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
