"""Loops that go through all batches of a loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.first_iteration import ends_at_once
from torchlint.semantics.entities import Function, Loop, Role
from torchlint.semantics.tree import last_name, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_OF_OTHER_LENGTH = frozenset({"islice", "cycle", "take", "range"})


def is_pass_over_data(model: Model, loop: Loop) -> bool:
    """`for x in loader:`, and `for i, (x, y) in enumerate(zip(first, second)):`, but neither `islice(loader, 4)` nor an
    iterator that somebody has made before, and may have drawn from; nor `batch.items()`."""
    if loop.iterable is None or not loop.iterates.is_(Kind.LOADER, Kind.ITERATOR) or ends_at_once(loop):
        return False
    named = [*walk(loop.iterable)]
    has_loader = any(model.value(node).kind is Kind.LOADER for node in named)
    return has_loader and not any(_ends_elsewhere(model, node) for node in named)


def _ends_elsewhere(model: Model, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        return last_name(node.func) in _OF_OTHER_LENGTH
    return isinstance(node, (cst.Name, cst.Attribute)) and model.value(node).kind is Kind.ITERATOR


def goes_over_loaders(model: Model, loop: Loop, function: Function) -> bool:
    """`for part, loader in loaders.items(): evaluate(loader)`: each iteration is a pass over all batches of one."""
    if not isinstance(loop.iterable, cst.Call) or model.call(loop.iterable).method not in ("items", "values"):
        return False
    own = (each for each in model.loops if each.function is function and not each.is_comprehension)
    return any(each.role in (Role.STEPS, Role.EVALUATION) or _runs_model_while(each) for each in own)


def _runs_model_while(loop: Loop) -> bool:
    """`while start < len(texts): net(texts[start : start + n])`"""
    return isinstance(loop.node, cst.While) and any(call.is_forward for call in loop.calls)
