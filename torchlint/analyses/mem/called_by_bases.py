"""Methods that a base in another file declares and calls: whoever calls the base decides whether gradients are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.callers_by_name import bases_abroad, is_called_only_with_gradients
from torchlint.semantics.class_bodies import is_placeholder
from torchlint.semantics.tree import is_name

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class, Function
    from torchlint.semantics.model import Model


def is_called_by_base(model: Model, function: Function) -> bool:
    """`inner_predict` of a class whose base has `def predict(self, x): return self.inner_predict(x)`, unless the whole
    project is seen to call `predict` with autograd on."""
    for home, base in bases_abroad(model, function):
        declared = base.method(function.name)
        if declared is not None and is_placeholder(declared):
            calls = _calls(base, function.name)
            if calls and not _are_made_with_gradients(model, home, base, calls):
                return True
    return False


def _calls(cls: Class, name: str) -> list[Call]:
    """The calls that other methods of a class make of one of its own."""
    others = [method for part in cls.lineage() for method in part.methods.values() if method.name != name]
    return [
        call
        for method in others
        for call in method.calls
        if call.method == name and is_name(call.receiver, method.own_name)
    ]


def _are_made_with_gradients(model: Model, home: Model, base: Class, calls: list[Call]) -> bool:
    """Whether autograd is on at all calls, and where the methods of the base that make them are called, by whatever
    object: those that none of its own methods calls, by somebody in sight."""
    made = [*calls]
    for call in made:  # it grows while the loop runs
        above = [other for other in _calls(base, call.function.name) if other not in made]
        is_reached = above or any(other in made for other in _calls(base, call.function.name))
        if home.grad_enabled(call.node) is not True:
            return False
        if not is_reached and not is_called_only_with_gradients(model, call.function):
            return False
        made += above
    return True
