"""What an evaluation leaves out: passes beside it, of which no finding speaks, that would go on recording a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.callers_by_name import calls_in_other_files
from torchlint.analyses.fate import Fate, Tracer
from torchlint.analyses.mem.step_parts import is_to_be_switched_off
from torchlint.semantics.tree import walk

from ._going_on import passes_of
from ._other_ways import passes_of_other_ways

if TYPE_CHECKING:
    from torchlint.analyses.mem.evaluation import Evaluation
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

TRAINING = {"backward", "gradients", "optimizer_steps"}


def left_out(region: cst.CSTNode, found: Evaluation, model: Model) -> cst.Call | None:
    """A forward pass that is not trained from and goes with that of the region, of which no finding speaks: of any
    network, where the function only evaluates, and otherwise of the same one beside it, or of any in another branch,
    where that gives the same variable its value."""
    network, targets = model.code(found.forward.node.func), targets_of(region, model)
    branches = set(blocks_of_chain(region, model)) - {model.parent(region)}
    trains = _takes_gradients_beside(region, model)
    evaluates = only_evaluates(found.forward.function, model)
    for call in passes_of(model, found.forward.function):
        line = model.statement(call.node)
        if model.grad_enabled(call.node) is not True or region in (line, *model.ancestors(line)):
            continue
        beside = model.parent(line) is model.parent(region) and model.code(call.node.func) == network
        instead = model.parent(line) in branches and bool(targets & targets_of(line, model))
        is_part = (evaluates or beside or instead) and not is_to_be_switched_off(model, call)
        if is_part and (not trains or evaluates or Fate.BACKWARD not in Tracer(model).of_expression(call.node)):
            return call.node
    return None


def covered_by_callers(found: Evaluation, model: Model) -> Call | None:
    """A call of a function that evaluates, where all calls in sight are to be switched off by findings of their own."""
    function = found.forward.function
    callers = [call for call in function.callers if model.grad_enabled(call.node) is not False]
    if not callers or function.passed_around or calls_in_other_files(model, function):
        return None
    return callers[0] if all(is_to_be_switched_off(model, call) for call in callers) else None


def left_beside(found: Evaluation, model: Model) -> Function | None:
    """A function that evaluates in another way, of which no finding speaks."""
    for call in passes_of_other_ways(found, model):
        if not is_to_be_switched_off(model, call) and only_evaluates(call.function, model):
            return call.function
    return None


def only_evaluates(function: Function, model: Model) -> bool:
    """Whether neither a function nor what is made of its results takes gradients, as far as can be seen."""
    passes = (call.node for call in passes_of(model, function))
    effects = model.effects(function)
    return not any(map(effects.has, TRAINING)) and Fate.BACKWARD not in Tracer(model).of_expression(*passes)


def _takes_gradients_beside(region: cst.CSTNode, model: Model) -> bool:
    """Whether code of the loop that a region is in takes gradients itself, and not only an attack that it calls."""
    loop = model.loop(region)
    if loop is None or model.effects(loop).has("optimizer_steps"):
        return True
    return any(loop in model.loops_around(call.node) for call in model.calls_to(".backward", "torch.autograd.grad"))


def blocks_of_chain(line: cst.CSTNode, model: Model) -> Iterator[cst.BaseSuite]:
    """The blocks of the `if` that a line is in a branch of."""
    above = model.parent(model.parent(line) or line)
    while isinstance(outer := model.parent(above) if above is not None else None, cst.If) and outer.orelse is above:
        above = outer
    while isinstance(above, (cst.If, cst.Else)):
        yield above.body
        above = above.orelse if isinstance(above, cst.If) else None


def _smalls(line: cst.CSTNode) -> Sequence[cst.BaseSmallStatement]:
    return line.body if isinstance(line, cst.SimpleStatementLine) else ()


def targets_of(line: cst.CSTNode, model: Model) -> set[Binding | None]:
    parts = [node for small in _smalls(line) for target in getattr(small, "targets", ()) for node in walk(target)]
    return {model.binding(node) for node in parts} - {None}
