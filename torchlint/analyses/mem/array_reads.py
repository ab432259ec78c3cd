"""Results that are read as arrays: `numpy()` raises on a tensor that requires a gradient, so these carry no graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

# What a tensor becomes by them carries the graph that it carried.
_KEEPING_GRAPH = frozenset(
    "cpu float double half squeeze unsqueeze view reshape flatten permute transpose t contiguous mean sum".split()
)


def is_read_as_array(model: Model, value: cst.CSTNode) -> bool:
    """Whether `numpy()` is called on a value, or on a variable that nothing else is ever assigned to, undetached."""
    if _becomes_array(model, value):
        return True
    assign = model.parent(value)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return False
    binding = model.binding(assign.targets[0].target)
    return binding is not None and len(binding.writes) == 1 and any(_becomes_array(model, r) for r in binding.reads)


def _becomes_array(model: Model, node: cst.CSTNode) -> bool:
    while True:
        match parent := model.parent(node):
            case cst.Subscript(value=inner) if inner is node:
                node = parent
            case cst.Attribute(value=inner, attr=cst.Name(value=name)) if inner is node:
                call = model.parent(parent)
                if not isinstance(call, cst.Call) or call.func is not parent:
                    return False
                if name == "numpy":
                    return True
                if name not in _KEEPING_GRAPH:
                    return False
                node = call
            case _:
                return False
