"""Loaders that live beside many others of their kind: each of a hundred clients has its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.extent import runs_few_times
from torchlint.semantics.transfer import element_of
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.semantics.entities import Call, Loop
    from torchlint.semantics.model import Model

_DEPTH = 2
_KEEPING = frozenset({"append", "add"})


def lives_beside_many(loader: Loader) -> bool:
    """Whether a list is filled with loaders, or with objects that make one each, and nothing says that they are few."""
    model, calls = loader.model, [loader.site]
    for _ in range(_DEPTH):
        loops = (loop for call in calls for loop in _collecting(model, call))
        if any(not (runs_few_times(model, loop) or element_of(loop.iterates).kind is Kind.STRING) for loop in loops):
            return True
        calls = [caller for call in calls if not call.function.is_module for caller in call.function.callers]
    return False


def _collecting(model: Model, call: Call) -> Iterator[Loop]:
    """The loops of which each iteration keeps what a call makes."""
    above = model.parent(call.node)
    outer = model.parent(above) if isinstance(above, cst.Arg) else None
    is_added = isinstance(outer, cst.Call) and model.call(outer).method in _KEEPING
    is_put = isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Subscript)
    return (loop for loop in call.loops() if loop.is_comprehension or is_added or is_put)
