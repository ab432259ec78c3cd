"""Times that a program takes with the host's clock, and reports, while the device may still be at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.host_branch import runs_on_host
from torchlint.analyses.housekeeping import CLOCKS
from torchlint.analyses.time.device_queue import DeviceQueue, Work, follows_wait
from torchlint.finding import Confidence
from torchlint.semantics.dataflow import reaches

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model


@dataclass(frozen=True, slots=True)
class Interval:
    """Two readings of a clock, the difference that is reported, and the work that nothing waits for."""

    start: cst.Call
    end: cst.Call
    difference: cst.BinaryOperation
    work: Work
    confidence: Confidence
    is_early: bool = False  # the work was queued before the first reading, and the interval waits for it


def unsynchronised_intervals(model: Model) -> Iterator[Interval]:
    differences = [
        node
        for node in model.nodes_of(cst.BinaryOperation)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract)
    ]
    if not differences or not any(call.callee in CLOCKS for call in model.calls):
        return
    queue: DeviceQueue | None = None
    seen: set[cst.CSTNode] = set()
    for node in differences:
        end, start = _reading(model, node.left), _reading(model, node.right)
        if start is None or end is None or start is end or end in seen or not _is_reported(model, node):
            continue
        if runs_on_host(end, model):
            continue
        queue = queue or DeviceQueue(model)
        if not queue.runs_ahead:
            return
        interval = _interval(model, queue, start, end, node) or _early_interval(model, queue, start, end, node)
        if interval is not None:
            seen.add(end)
            yield interval


def _interval(
    model: Model, queue: DeviceQueue, start: cst.Call, end: cst.Call, difference: cst.BinaryOperation
) -> Interval | None:
    """None where the work is waited for; also where the next iteration waits for it, inside its own interval."""
    loop = model.loop(start)
    if model.function(start) is not model.function(end) or loop is not model.loop(end):
        return None
    state = queue.between(start, end)
    if state is None or state.queued is None:
        return None
    if not state.waits:
        return Interval(start, end, difference, state.queued, Confidence.CERTAIN)
    is_made_up_for = loop is not None and not queue.waits_outside(loop, start, end)
    if is_made_up_for or not state.queued.is_heavy:
        return None
    return Interval(start, end, difference, state.queued, Confidence.LIKELY)


def _early_interval(
    model: Model, queue: DeviceQueue, start: cst.Call, end: cst.Call, difference: cst.BinaryOperation
) -> Interval | None:
    """One that waits just before the second reading, also for a pass through a model that ran before the first."""
    function = model.function(start)
    if function is not model.function(end) or isinstance(function.node, cst.Lambda) or model.loop(start) is not None:
        return None
    if not follows_wait(end, model) or follows_wait(start, model):
        return None
    work = queue.before(start).queued
    if work is None or not work.is_heavy:
        return None
    return Interval(start, end, difference, work, Confidence.LIKELY, is_early=True)


# -- readings


def _reading(model: Model, node: cst.BaseExpression) -> cst.Call | None:
    """The call that read the clock for a value, if it is one call for sure."""
    if isinstance(node, cst.Call):
        return node if _reads_clock(model, model.call(node)) else None
    binding = model.binding(node)
    if binding is None:
        return None
    function = model.function(node)
    writes = [w for w in binding.writes if w.function is function and reaches(model, binding, w.target, node)]
    if len(writes) != 1 or (binding.cls is None and len(writes) != len(_written_here(model, binding, node))):
        return None
    value = writes[0].value
    if not isinstance(value, cst.Call) or writes[0].unpacked or writes[0].kind != "assign":
        return None
    return value if _reads_clock(model, model.call(value)) else None


def _written_here(model: Model, binding: Binding, node: cst.CSTNode) -> list[cst.CSTNode]:
    """Writes that may be read here, those of other functions included."""
    return [w.target for w in binding.writes if reaches(model, binding, w.target, node)]


def _reads_clock(model: Model, call: Call) -> bool:
    """A clock, or a function of this file that does nothing but read one."""
    if call.callee in CLOCKS:
        return True
    target = call.target
    if target is None or len(target.calls) != 1 or len(target.returns) != 1:
        return False
    return target.calls[0].callee in CLOCKS and target.returns[0].value is target.calls[0].node


# -- what becomes of the difference


def _is_reported(model: Model, difference: cst.CSTNode) -> bool:
    """Whether a time is printed, kept or handed on, and not only compared with a limit."""
    node: cst.CSTNode = difference
    for above in model.ancestors(difference):
        match above:
            case cst.Comparison() | cst.ComparisonTarget() | cst.While() | cst.Assert():
                return False
            case (
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)])
                | cst.AugAssign(target=cst.Name() as name)
            ):
                return _is_read(model, name)
            case cst.BaseSmallStatement():
                return not isinstance(above, cst.Expr) or above.value is not difference
            case cst.BaseCompoundStatement():
                return False
        node = above
    return node is not difference


def _is_read(model: Model, name: cst.Name) -> bool:
    binding = model.binding(name)
    if binding is None:
        return False
    return any(
        read is not name and reaches(model, binding, name, read) and not _is_compared(model, read)
        for read in binding.reads
    )


def _is_compared(model: Model, read: cst.CSTNode) -> bool:
    return isinstance(model.parent(read), (cst.Comparison, cst.ComparisonTarget))
