"""Functions that do all of a training step, so that whoever calls them does so in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.fate import is_in_loss
from torchlint.analyses.once import once_for_each
from torchlint.semantics.entities import Function, Loop, Role
from torchlint.semantics.hints import looks_like_optimizer
from torchlint.semantics.roles import yields_batches
from torchlint.semantics.tree import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model


@once_for_each
def is_whole_step(model: Model, function: Function) -> bool:
    """Whether a function that nobody calls in sight does all that a training step does, with a model that it is given,
    by itself or with the help of others: whoever calls it does so in a loop. An optimizer that is given a closure may
    do all of the training by itself."""
    if not function.is_step or function.name.startswith("test_"):
        return False
    steps = [call for call in function.calls if call.is_optimizer_step or _helps(model, call)]
    if not steps or any(call.loops() or _may_be_given_closure(call) for call in steps):
        return False
    if _goes_through_data(model, function):
        return False
    forwards = [call for call in model.effects(function).forwards if call.function is function]
    return not any(_makes(model, function, call.receiver or call.node.func) for call in forwards)


def _helps(model: Model, call: Call) -> bool:
    """`self.backward_and_step(loss)`: what steps back from a loss that it is given."""
    helper = call.target or call.foreign
    if helper is None or not helper.is_step or helper.is_pass or not model.effects(call).has("optimizer_steps"):
        return False
    return any(model.value(arg.value).is_(Kind.TENSOR, Kind.UNKNOWN) for arg in call.arguments)


def _may_be_given_closure(call: Call) -> bool:
    """Not so `scaler.step(optimizer)`."""
    given = call.arguments if call.is_optimizer_step else []
    return any(
        call.argument("", place).value.kind is not Kind.OPTIMIZER and not looks_like_optimizer(last_name(arg.value))
        for place, arg in enumerate(given)
    )


def _goes_through_data(model: Model, function: Function) -> bool:
    """Whether a function holds a pass over data, and not only loops over the parts of its loss."""
    if not function.is_pass:
        return False
    entered = (inner for call in function.calls for inner in (call.target, call.foreign, *call.alternatives))
    if any(inner is not None and inner.is_pass for inner in entered):
        return True
    loops = (loop for loop in function.loops if loop.role in (Role.STEPS, Role.EVALUATION, Role.EPOCHS))
    return not all(loop.role is Role.EVALUATION and _adds_to_loss(model, loop) for loop in loops)


def _adds_to_loss(model: Model, loop: Loop) -> bool:
    """`for a, b in zip(features, wanted): loss += criterion(a, b)`, of what is no data loader."""
    if yields_batches(loop.iterates) or model.grad_enabled(loop.node) is False:
        return False
    bindings = loop.function.scope.bindings.values()
    written = (b for b in bindings if any(write.loop is loop and write.kind == "augmented" for write in b.writes))
    return any(is_in_loss(model, binding) for binding in written)


def _makes(model: Model, function: Function, module: cst.BaseExpression) -> bool:
    """Whether a model is made in a function, as in a test of it."""
    return any(model.function(made) is function for made in model.value(module).origins)
