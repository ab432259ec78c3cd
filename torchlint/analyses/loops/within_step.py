"""Loops that are a part of one step: over a few losses, models, meters, or the entries of a dict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.first_iteration import ends_at_once
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Loop
    from torchlint.semantics.model import Model


def is_within_step(model: Model, loop: Loop) -> bool:
    """A comprehension, a loop over a few names, models, a list of known length or the entries of a dict, or none at
    all."""
    if loop.is_comprehension or ends_at_once(loop):
        return True
    if loop.role is Role.MODULES:
        return any(call.loop is loop for call in model.effects(loop).forwards)
    if loop.role not in (Role.PLAIN, Role.ELEMENTS):
        return False
    if _is_over_keys(model, loop):
        return True
    if loop.parent is None:
        return False
    if isinstance(loop.iterable, cst.Call):
        call = model.call(loop.iterable)
        counted = _counted(model, call)
        return call.method in ("items", "values", "keys") or (counted is not None and _is_of_known_length(counted))
    if isinstance(loop.iterable, (cst.List, cst.Tuple)) or loop.iterates.kind is Kind.DICT:
        return True
    return _is_of_known_length(loop.iterates)


def is_over_entries(model: Model, loop: Loop) -> bool:
    """`for name, loss in losses.items()`, which is all of what a function is called for in each step, or a part."""
    return isinstance(loop.iterable, cst.Call) and model.call(loop.iterable).method in ("items", "values")


def _is_over_keys(model: Model, loop: Loop) -> bool:
    """`for name in counts: total += counts[name]`"""
    entries = model.binding(loop.iterable) if isinstance(loop.iterable, cst.Name) else None
    key = model.binding(loop.target) if isinstance(loop.target, cst.Name) else None
    if entries is None or key is None or not loop.iterates.is_(Kind.UNKNOWN, Kind.DICT):
        return False
    asked = (model.parent(read) for read in entries.reads if loop in model.loops_around(read))
    return any(
        isinstance(entry, cst.Subscript)
        and any(isinstance(part.slice, cst.Index) and model.binding(part.slice.value) is key for part in entry.slice)
        for entry in asked
    )


def _is_of_known_length(value: Value) -> bool:
    return value.is_(Kind.LIST, Kind.TUPLE) and bool(value.items)


def _counted(model: Model, call: Call) -> Value | None:
    """`losses` of `range(len(losses))` and of `enumerate(losses)`."""
    whole = call.arguments[0].value if len(call.arguments) == 1 else None
    if call.callee == "builtins.range" and isinstance(whole, cst.Call):
        call = model.call(whole)
        return model.value(call.arguments[0].value) if call.callee == "builtins.len" and call.arguments else None
    return model.value(whole) if call.callee == "builtins.enumerate" and whole is not None else None


def is_over_receivers(model: Model, loop: Loop, call: Call) -> bool:
    """`for meter in meters: meter.update(out, y)`, and `meters[name].update(out, y)` for each of the names."""
    if loop.target is None:
        return False
    each = {model.binding(name) for name in walk(loop.target) if isinstance(name, cst.Name)}
    owner = call.receiver if call.receiver is not None else call.node.func
    return any(model.binding(name) in each for name in walk(owner) if isinstance(name, cst.Name))
