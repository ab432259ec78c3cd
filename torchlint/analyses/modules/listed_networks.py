"""Networks that are kept in a list until one of them is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model


def put_into_list(model: Model, taken: cst.BaseExpression) -> list[tuple[cst.Call, Binding | None]]:
    """The calls that put the networks into a list of which one is taken, `networks[fold]`, and the variables that hold
    them there."""
    holder = model.binding(taken.value) if isinstance(taken, cst.Subscript) else None
    methods = (model.parent(read) for read in holder.reads) if holder is not None else ()
    filling = (model.parent(method) for method in methods if isinstance(method, cst.Attribute))
    calls = [call for call in filling if isinstance(call, cst.Call) and model.call(call).method == "append"]
    return [(call, model.binding(arg.value)) for call in calls for arg in call.args]
