"""Resets the gradients once for every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.step_cycle import Reached, changes, optimizer_of
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.tree import dotted, walk

if TYPE_CHECKING:
    from torchlint.analyses.loops.step_cycle import Cycle
    from torchlint.rule import Report
    from torchlint.semantics.entities import Call, Guard
    from torchlint.semantics.model import Model

_WHY = "every step then follows the gradients of its own batches only, so training takes another course"


def fix(report: Report, model: Model) -> Fix:
    cycle: Cycle = report.facts
    if dotted(cycle.optimizer) is None:
        raise NoFixError("the optimizer has no name that means the same everywhere")
    if _is_undefined(cycle.optimizer, model):
        raise NoFixError("nothing in the file makes the optimizer")
    if cycle.reset in (Reached.OUTSIDE, Reached.RARELY):
        raise NoFixError(
            "the file resets these gradients elsewhere, and whether it means to add them up is for you to say"
        )
    return Fix((_edit(cycle, model),), Applicability.UNSAFE, _WHY)


def _is_undefined(optimizer: cst.BaseExpression, model: Model) -> bool:
    if not isinstance(optimizer, cst.Name) or "import *" in model.source.text:
        return False
    binding = model.binding(optimizer)
    return binding is None or not binding.writes


def _edit(cycle: Cycle, model: Model) -> Edit:
    rewriter = Rewriter(model)
    reset = model.code(cycle.optimizer) + ".zero_grad()"
    if (named := _named_only(cycle, model)) is not None:
        return rewriter.replace(named, reset)
    if cycle.closure is not None and cycle.backward.function is cycle.closure:
        closure = cycle.closure.node
        if not isinstance(closure, cst.FunctionDef):
            raise NoFixError("the closure is a lambda")
        return rewriter.prepend_to_body(closure, reset)
    anchor = _anchor(cycle, model)
    if _skips_iterations(cycle, anchor, model):
        return rewriter.insert_after(anchor, reset)
    body = cycle.loop.node if cycle.loop is not None else None
    if _is_only_step(cycle, anchor, model) and isinstance(body, (cst.For, cst.While)):
        return rewriter.prepend_to_body(body, reset)
    place = _before_backward(cycle, anchor, model)
    return rewriter.insert_before(place, reset) if place is not None else rewriter.insert_after(anchor, reset)


def _named_only(cycle: Cycle, model: Model) -> cst.Attribute | None:
    """`optimizer.zero_grad` in the loop, a statement that does nothing because it is not called."""
    statements = (node for part in (cycle.loop.body if cycle.loop is not None else ()) for node in walk(part))
    for node in statements:
        match node:
            case cst.Expr(value=cst.Attribute(value=owner, attr=cst.Name(value="zero_grad")) as named):
                if owner.deep_equals(cycle.optimizer) and not _guards(named, cycle, model):
                    keeps = model.span(cycle.backward.node)[0] < model.span(named)[0] < model.span(cycle.step.node)[0]
                    return None if keeps else named
    return None


def _anchor(cycle: Cycle, model: Model) -> cst.CSTNode:
    """The step, or the condition whose branches all step."""
    anchor: cst.CSTNode = cycle.step.node
    own = {guard.node: guard.branch for guard in _guards(cycle.step.node, cycle, model)}
    for other in _steps(cycle):
        if other is cycle.step or model.code(optimizer_of(other) or other.node) != model.code(cycle.optimizer):
            continue
        theirs = _guards(other.node, cycle, model)
        shared = [guard.node for guard in theirs if own.get(guard.node, guard.branch) != guard.branch]
        if not shared:
            raise NoFixError("the optimizer steps several times in one iteration")
        anchor = shared[-1] if anchor is cycle.step.node or shared[-1] in model.ancestors(anchor) else anchor
    return anchor


def _steps(cycle: Cycle) -> list[Call]:
    """The steps of all optimizers in the function, and in the loop if that is in it."""
    calls = cycle.step.function.calls
    return [call for call in calls if call.is_optimizer_step and (_elsewhere(cycle) or cycle.loop in call.loops())]


def _guards(node: cst.CSTNode, cycle: Cycle, model: Model) -> list[Guard]:
    return model.guards(node, None if _elsewhere(cycle) else cycle.loop)


def _elsewhere(cycle: Cycle) -> bool:
    return cycle.loop is None or cycle.loop.function is not cycle.step.function


def _skips_iterations(cycle: Cycle, anchor: cst.CSTNode, model: Model) -> bool:
    """Whether some backward passes are not followed by a step: batches are accumulated."""
    shared = {guard.node for guard in _guards(cycle.backward.node, cycle, model)}
    return any(guard.node not in shared for guard in _guards(anchor, cycle, model))


def _is_only_step(cycle: Cycle, anchor: cst.CSTNode, model: Model) -> bool:
    """Whether every iteration steps, and no other optimizer before, whose backward pass may reach these gradients."""
    if (
        _elsewhere(cycle)
        or _guards(anchor, cycle, model)
        or any(changes([cycle.optimizer], loop, model) for loop in cycle.step.loops())
    ):
        return False
    return next(iter(_steps(cycle))) is cycle.step


def _before_backward(cycle: Cycle, anchor: cst.CSTNode, model: Model) -> cst.CSTNode | None:
    """The statement with the first backward pass for the step, in a block that the step is in as well."""
    calls = cycle.step.function.calls
    position = model.span(cycle.step.node)[0]
    earlier = [model.span(call.node)[0] for call in _steps(cycle) if model.span(call.node)[0] < position]
    start = max(earlier, default=0)
    passes = [c for c in calls if c.is_backward and start < model.span(c.node)[0] < position]
    if not _elsewhere(cycle):
        passes = [call for call in passes if cycle.loop in call.loops()]
    if not passes:
        return None
    around = set(model.ancestors(anchor))
    node: cst.CSTNode = min(passes, key=lambda call: model.span(call.node)).node
    while (parent := model.parent(node)) is not None and not (isinstance(parent, _BLOCKS) and parent in around):
        node = parent
    bound = [loop.node for loop in cycle.step.loops() if changes([cycle.optimizer], loop, model)]
    return node if all(loop in model.ancestors(node) for loop in bound) else None


_BLOCKS = (cst.IndentedBlock, cst.Module, cst.SimpleStatementSuite, cst.SimpleStatementLine)
