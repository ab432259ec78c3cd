"""Whether a value was computed by a model: a walk backwards from an expression to what it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import children
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Loop
    from torchlint.semantics.model import Model

_LEAVING = frozenset(["item", "cpu", "numpy", "tolist", "size", "dim", "numel"])
_LIMIT = 400


def forwards_behind(model: Model, node: cst.CSTNode, loop: Loop | None = None) -> list[Call]:
    """The forward passes that a value is computed from, on its way through the variables of its function.

    Copies to the host end the way. With `loop`, only what the loop itself computes counts.
    """
    found: list[Call] = []
    seen: set[cst.CSTNode] = set()
    work = [node]
    while work and len(seen) < _LIMIT:
        at = work.pop()
        if at in seen:
            continue
        seen.add(at)
        call = model.call(at) if isinstance(at, cst.Call) else None
        if call is not None and call.is_forward and (loop is None or loop in call.loops()):
            found.append(call)
        elif not _is_on_host(model, at, call):
            work.extend(_sources(model, at, node))
    return found


def _is_on_host(model: Model, node: cst.CSTNode, call: Call | None) -> bool:
    if call is not None and call.method in _LEAVING:
        return True
    value = model.value(node)
    return value.is_(Kind.NUMBER, Kind.ARRAY, Kind.STRING) or value.place is Place.HOST


def _sources(model: Model, node: cst.CSTNode, start: cst.CSTNode) -> list[cst.CSTNode]:
    binding = model.binding(node)
    if binding is None:
        return children(node)
    function = model.function(start)
    return [write.value for write in binding.writes if write.value is not None and write.function is function]
