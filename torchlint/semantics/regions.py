"""Regions of code in which autograd is off."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.names import Names
from torchlint.semantics.values import Value


def with_item_grad(
    node: cst.BaseExpression, names: Names, values: Mapping[cst.CSTNode, Value]
) -> tuple[bool, bool | None]:
    """(whether the context manager or call switches autograd, the state it switches to; None when not known)."""
    if not isinstance(node, cst.Call):
        return False, None
    name = names.qualified(node.func)
    if name in words.GRAD_DISABLING:
        off = not (name == "torch.inference_mode" and _constant(node, values) is False)
        return True, not off
    if name == "torch.enable_grad":
        return True, True
    if name == "torch.set_grad_enabled":
        state = _constant(node, values)
        return True, state if isinstance(state, bool) else None
    return False, None


def _constant(node: cst.Call, values: Mapping[cst.CSTNode, Value]) -> object:
    if not node.args:
        return None
    value = values.get(node.args[0].value)
    return value.constant if value is not None else None
