"""Functions that torch.compile traces: their loops are unrolled, and what they read back breaks the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model


def is_compiled(model: Model, function: Function) -> bool:
    """Whether every call in sight of the function is part of a compiled region."""
    return "compile" in model.source.text and function in model.once(_compiled)


def _compiled(model: Model) -> frozenset[Function]:
    found = {function for function in model.functions if "torch.compile" in function.decorators}
    classes = {cls.ref: cls for cls in model.classes}
    for call in model.calls_to("torch.compile", "torch.nn.Module.compile"):
        found.update(call.passes)
        value = call.receiver_value if call.callee == "torch.nn.Module.compile" else call.argument("model", 0).value
        cls = classes.get(value.ref) if value.kind is Kind.MODULE and value.ref is not None else None
        forward = cls.method("forward") if cls is not None else None
        if forward is not None:
            found.add(forward)
    work = list(found)
    while work:
        for called in {call.target for call in work.pop().calls} - found:
            if called is not None and _is_called_by(called, found):
                found.add(called)
                work.append(called)
    return frozenset(found)


def _is_called_by(function: Function, callers: set[Function]) -> bool:
    outside = function.passed_around or function.foreign_callers
    return not outside and all(call.function in callers for call in function.callers)
