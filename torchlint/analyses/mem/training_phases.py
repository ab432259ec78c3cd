"""Code that trains in one phase and evaluates in the other, by a condition around its backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.callers_by_name import may_run_without_gradients
from torchlint.analyses.loops.phases import condition, separates_phases
from torchlint.analyses.once import once_for_each
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function, Guard, Loop
    from torchlint.semantics.model import Model


def training_phase(model: Model, forward: Call) -> tuple[cst.CSTNode, str] | None:
    """The loop or statement, and the condition of `if phase == "train": loss.backward()`, where the forward pass is
    not under it.
    """
    if _is_switched_by_callers(model, forward.function):
        return None
    for loop in (*forward.loops(), None):
        backward = model.effects(loop if loop is not None else forward.function).backward
        if not backward:
            continue
        guards = {_training_guard(model, call, loop, forward) for call in backward}
        guard = guards.pop() if len(guards) == 1 else None
        if guard is None or (loop is not None and _is_changed_in(model, guard.node, loop)):
            return None
        if _is_decided_by(guard, model, forward, loop):
            return None
        return loop.node if loop is not None else model.statement(forward.node), condition(guard, model)
    return None


def _is_decided_by(guard: Guard, model: Model, forward: Call, loop: Loop | None) -> bool:
    """Whether the forward pass stands in one of the branches of the guard, of which the other never trains, or where
    the same holds, be it asked once more around the backward pass."""
    found = condition(guard, model)
    return any(
        other.node is guard.node or (separates_phases(other, model) and condition(other, model) == found)
        for other in model.guards(forward.node, inside=loop)
    )


def _is_switched_by_callers(model: Model, function: Function) -> bool:
    entered = [function]
    seen = {function}
    for entry in entered:  # it grows while the loop runs
        if _is_switched_at_a_call(model, entry):
            return True
        above = [call.function for call in entry.callers if call.function not in seen]
        seen.update(above)
        entered.extend(dict.fromkeys(above))
    return False


@once_for_each
def _is_switched_at_a_call(model: Model, function: Function) -> bool:
    grads = [model.grad_enabled(call.node) for call in function.callers]
    grads += [call.grad_enabled for call in function.foreign_callers]
    return any(grad is not True for grad in grads) or may_run_without_gradients(model, function)


def _training_guard(model: Model, backward: Call, loop: Loop | None, forward: Call) -> Guard | None:
    if backward.function is not forward.function:
        return None
    for guard in model.guards(backward.node, inside=loop):
        if separates_phases(guard, model):
            return guard
    return None


def _is_changed_in(model: Model, guard: cst.CSTNode, loop: Loop) -> bool:
    assert isinstance(guard, cst.If)
    names = [model.binding(node) for node in walk(guard.test) if isinstance(node, cst.Name)]
    return any(
        write.loop is not None and loop in write.loop.around()
        for binding in names
        if binding is not None
        for write in binding.writes
    )
