"""Resets the gradients once for every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.step_cycle import Reached

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.entities import Guard
    from torchlint.semantics.model import Model
    from torchlint.semantics.step_cycle import Cycle

_WHY = "every step then follows the gradients of its own batches only, so training takes another course"


def fix(report: Report, model: Model) -> Fix | None:
    cycle: Cycle = report.facts
    if not _is_plain(cycle.optimizer) or cycle.reset in (Reached.OUTSIDE, Reached.RARELY):
        return None
    edit = _edit(cycle, model)
    return Fix((edit,), Applicability.UNSAFE, _WHY) if edit is not None else None


def _edit(cycle: Cycle, model: Model) -> Edit | None:
    rewriter = Rewriter(model)
    reset = model.code(cycle.optimizer) + ".zero_grad()"
    if cycle.closure is not None:
        closure = cycle.closure.node
        return rewriter.prepend_to_body(closure, reset) if isinstance(closure, cst.FunctionDef) else None
    if _skips_iterations(cycle, model):
        return rewriter.insert_after(cycle.step.node, reset)
    if cycle.loop is not None and cycle.step.function is cycle.loop.function:
        body = cycle.loop.node
        return rewriter.prepend_to_body(body, reset) if isinstance(body, (cst.For, cst.While)) else None
    if cycle.backward.function is cycle.step.function:
        return rewriter.insert_before(cycle.backward.node, reset)
    return rewriter.insert_after(cycle.step.node, reset)


def _skips_iterations(cycle: Cycle, model: Model) -> bool:
    """Whether some backward passes are not followed by a step: batches are accumulated."""
    shared = {guard.node for guard in model.guards(cycle.backward.node, cycle.loop)}
    own = [guard for guard in model.guards(cycle.step.node, cycle.loop) if guard.node not in shared]
    return any(not _steps_otherwise(guard, cycle, model) for guard in own)


def _steps_otherwise(guard: Guard, cycle: Cycle, model: Model) -> bool:
    """Whether the other branch of a condition takes the step too, as with and without a gradient scaler."""
    steps = [call for call in cycle.step.function.calls if call.is_optimizer_step and call is not cycle.step]
    return any(
        other.node is guard.node and other.branch != guard.branch
        for step in steps
        for other in model.guards(step.node, cycle.loop)
    )


def _is_plain(optimizer: cst.BaseExpression) -> bool:
    """A variable or an attribute, which means the same wherever it is written."""
    while isinstance(optimizer, cst.Attribute):
        optimizer = optimizer.value
    return isinstance(optimizer, cst.Name)
