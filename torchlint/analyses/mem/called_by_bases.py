"""Methods that a base in another file declares and calls: whoever calls the base decides whether gradients are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.class_bodies import is_placeholder

if TYPE_CHECKING:
    from torchlint.semantics.entities import Class, Function
    from torchlint.semantics.model import Model

_DEPTH = 4


def is_called_by_base(model: Model, function: Function) -> bool:
    """`inner_predict` of a class whose base has `def predict(self, x): return self.inner_predict(x)`."""
    return function.cls is not None and _is_called(model, function.cls, function.name, _DEPTH)


def _is_called(model: Model, cls: Class, name: str, depth: int) -> bool:
    behind = (model.class_behind(base) for part in cls.lineage() for base in part.bases if base is not None)
    for home, base in (found for found in behind if found is not None):
        declared = base.method(name)
        if declared is not None and is_placeholder(declared) and _calls(base, name):
            return True
        if depth and home is not model and _is_called(home, base, name, depth - 1):
            return True
    return False


def _calls(cls: Class, name: str) -> bool:
    """Whether another method of a class calls one of its own."""
    others = (method for part in cls.lineage() for method in part.methods.values() if method.name != name)
    return any(
        call.method == name and isinstance(call.receiver, cst.Name) and [call.receiver.value] == method.params[:1]
        for method in others
        for call in method.calls
    )
