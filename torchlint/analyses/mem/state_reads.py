"""State that code reads from a network besides its outputs: it may be a part of the graph of a forward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import text
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import module_method

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_PLAIN_ATTRIBUTES = {"module", "training", "device", "dtype", "config", "name"}


def read_for_state(model: Model) -> set[str]:
    """What attributes are read of that are no modules, numbers or answers to arguments."""
    found: set[str] = set()
    for node in model.nodes_of(cst.Attribute):
        if (
            not isinstance(node, cst.Attribute)
            or module_method(node.attr.value)
            or node.attr.value in _PLAIN_ATTRIBUTES
        ):
            continue
        parent = model.parent(node)
        is_pass = isinstance(parent, cst.Call) and parent.func is node and bool(parent.args)
        is_known = model.value(node).is_(Kind.MODULE, Kind.PARAMETERS, Kind.NUMBER, Kind.STRING)
        if not (is_pass or is_known or _is_acted_on(model, node)):
            found.add(text(node.value))
    return found


def _is_acted_on(model: Model, node: cst.CSTNode) -> bool:
    """`net.encoder` of the statement `net.encoder.reset()`, which takes nothing from it; `net.loss.backward()` does."""
    method = model.parent(node)
    call = model.parent(method) if isinstance(method, cst.Attribute) else None
    if not isinstance(call, cst.Call) or call.func is not method or model.call(call).is_backward:
        return False
    return isinstance(model.parent(call), cst.Expr)
