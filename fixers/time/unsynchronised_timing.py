"""Waits for the device before both readings of the clock, where there is a device to wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of

from torchlint.analyses.conditions import Conditions, conditions
from torchlint.analyses.devices.cuda_flags import cuda_flag
from torchlint.analyses.devices.moves import moves_to_accelerator
from torchlint.analyses.devices.visible_devices import names_several_gpus
from torchlint.analyses.once import once_for_each
from torchlint.analyses.time.device_queue import follows_wait
from torchlint.analyses.time.stopwatch import differences, unsynchronised_intervals
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.time.stopwatch import Interval
    from torchlint.rule import Report
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

_WHY = "the program waits for the device before both readings, and reports other times"


def fix(report: Report, model: Model) -> Fix:
    interval: Interval = report.facts
    if interval.is_block:
        raise NoFixError("others may time what never runs on the device with the same timer, which would have to wait")
    if _is_of_training(interval, model):
        raise NoFixError("each training step is timed, and waiting in each would slow down all of them")
    if _statement(interval.end, model) is model.small_statement(interval.work.node):
        raise NoFixError("the work and the reading of the clock are one statement")
    if _is_on_several_gpus(interval, model):
        raise NoFixError("the function works on several GPUs, and each would have to be waited for")
    if any("synchronize" in Rewriter(model).comments(reading) for reading in (interval.start, interval.end)):
        raise NoFixError("a comment beside it speaks of the wait")
    edits: dict[Edit, None] = {}
    for reading in (interval.start, interval.end):
        statement = _statement(reading, model)
        if not follows_wait(statement, model):
            rewriter = Rewriter(model)
            name, imports = rewriter.name_for("torch.cuda", statement)
            wait = rewriter.insert_before(statement, *_wait(name, statement, interval, model))
            edits |= dict.fromkeys([*imports, wait])
    if not edits:
        raise NoFixError("the program waits for the device before both readings, but not on every way")
    stay = [end for end in (_other_end(interval, model), _alike_in_training(interval, model)) if end is not None]
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY, goes_with=(places_of(stay, model),))


def _is_of_training(interval: Interval, model: Model) -> bool:
    return any(loop.role is Role.STEPS for loop in model.loops_around(interval.end))


def _alike_in_training(interval: Interval, model: Model) -> cst.BaseExpression | None:
    """The end of an interval of each training step that the file takes in the same words."""
    ending = model.code(_statement(interval.end, model))
    alike = (other.end for other in unsynchronised_intervals(model) if _is_of_training(other, model))
    return next((end for end in alike if model.code(model.small_statement(end) or end) == ending), None)


def _is_on_several_gpus(interval: Interval, model: Model) -> bool:
    """Whether the file names several GPUs, or the function goes through them: `for i in range(4): x.to(i)`."""
    function = model.function(interval.end)
    places = [arg.value for call in function.calls if call.method in ("to", "cuda") for arg in call.arguments[:1]]
    return names_several_gpus(model) or any(_is_gone_through(place, model) for place in places)


def _is_gone_through(place: cst.BaseExpression, model: Model) -> bool:
    targets = (loop.target for loop in model.loops_around(place) if loop.target is not None)
    names = [node for target in targets for node in walk(target) if isinstance(node, cst.Name)]
    may_be_device = isinstance(place, cst.Name) and not model.value(place).is_(Kind.DTYPE, Kind.TENSOR, Kind.BATCH)
    return may_be_device and any(model.binding(name) is model.binding(place) for name in names)


def _other_end(interval: Interval, model: Model) -> cst.BaseExpression | None:
    """The end of another interval with the same start, of which no finding speaks and before which nothing waits."""
    ends = {other.end for other in unsynchronised_intervals(model)}
    others = (end for start, end in differences(model) if start is interval.start and end not in ends)
    return next((end for end in others if not follows_wait(_statement(end, model), model)), None)


def _wait(cuda: str, statement: cst.CSTNode, interval: Interval, model: Model) -> tuple[str, ...]:
    """`torch.cuda.synchronize()`, under a condition where the program may run without a GPU."""
    function = model.function(statement)
    flag = cuda_flag(model, statement, _moves(model, function)) or f"{cuda}.is_available()"
    asked = conditions(model, statement)
    fails_anyway = model.function(interval.end) is function and _needs_cuda(interval.end, model)
    if asked.get(flag) or fails_anyway or _needs_cuda(statement, model) or _waits_unasked(function, asked, model):
        return (f"{cuda}.synchronize()",)
    return f"if {flag}:", f"    {cuda}.synchronize()"


@once_for_each
def _moves(model: Model, function: Function) -> list[cst.CSTNode]:
    return [call.node for call in function.calls if moves_to_accelerator(call, model)]


def _needs_cuda(statement: cst.CSTNode, model: Model) -> bool:
    """Whether the program fails before a statement where there is no GPU: it has called `.cuda()` by then."""
    here, start = model.function(statement), model.span(statement)[0]
    return any(
        call.function in (here, model.functions[0]) and not model.guards(call.node) and model.span(call.node)[1] < start
        for call in model.calls_to(".cuda")
    )


def _waits_unasked(function: Function, asked: Conditions, model: Model) -> bool:
    """Whether the function waits for the device on the same conditions elsewhere, and asks for none there."""
    waits = (call for call in function.calls if call.callee == "torch.cuda.synchronize" and not _is_tried(call, model))
    return any(conditions(model, call.node).items() <= asked.items() for call in waits)


def _is_tried(call: Call, model: Model) -> bool:
    """Whether the program goes on where the call fails."""
    return any(isinstance(above, cst.Try) for above in model.ancestors(call.node))


def _statement(reading: cst.BaseExpression, model: Model) -> cst.BaseSmallStatement:
    """The simple statement that reads the clock, once each time that it runs."""
    loop = model.loop(reading)
    statement = model.small_statement(reading)
    inside = isinstance(model.function(reading).node, cst.Lambda) or (loop is not None and loop.is_comprehension)
    if inside or statement is None:
        raise NoFixError("no statement has room for a wait before the clock is read")
    return statement
