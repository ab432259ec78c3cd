"""Methods that a base in another file declares and calls: whoever calls the base decides whether gradients are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.mem.callers_by_name import bases_abroad
from torchlint.semantics.class_bodies import is_placeholder

if TYPE_CHECKING:
    from torchlint.semantics.entities import Class, Function
    from torchlint.semantics.model import Model


def is_called_by_base(model: Model, function: Function) -> bool:
    """`inner_predict` of a class whose base has `def predict(self, x): return self.inner_predict(x)`."""
    for _, base in bases_abroad(model, function):
        declared = base.method(function.name)
        if declared is not None and is_placeholder(declared) and _calls(base, function.name):
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
