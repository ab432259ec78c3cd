"""Times that a program takes with the host's clock, and reports, while the device may still be at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.host_branch import runs_on_host
from torchlint.analyses.loops.housekeeping import CLOCKS
from torchlint.analyses.once import once
from torchlint.analyses.time.array_results import hands_back_arrays
from torchlint.analyses.time.device_queue import DeviceQueue, State, Work, follows_wait
from torchlint.analyses.time.iterations import (
    carried_reading,
    is_carried,
    over_the_edge,
    waits_between,
    waits_outside,
)
from torchlint.analyses.time.on_cpu import computes_on_cpu, run_on_cpu
from torchlint.analyses.time.readings import is_reported, reading
from torchlint.analyses.time.timed_blocks import timed_blocks
from torchlint.analyses.time.timers import timer_calls
from torchlint.finding import Confidence

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model


@dataclass(frozen=True, slots=True)
class Interval:
    """Two readings of a clock, or calls that read one, and the work between them that nothing waits for."""

    start: cst.BaseExpression
    end: cst.BaseExpression
    work: Work
    confidence: Confidence
    is_early: bool = False  # the work was queued before the first reading, and the interval waits for it

    @property
    def is_block(self) -> bool:
        """Both readings are taken by what a `with` statement or a decorator calls."""
        return self.start is self.end


@once
def unsynchronised_intervals(model: Model) -> Iterator[Interval]:
    """Times that are reported and leave out work which the device had yet to do, in source order."""
    seen: set[cst.CSTNode] = set()
    for start, end in chain(differences(model), timer_calls(model), carried_differences(model)):
        if end in seen or runs_on_host(end, model) or model.function(end).name == "__getitem__":
            continue
        queue = model.once(DeviceQueue)
        if not queue.runs_ahead:
            return
        interval = _interval(model, queue, start, end) or _early_interval(model, queue, start, end)
        if interval is not None and not computes_on_cpu(model, start, end):
            seen.add(end)
            yield interval
    yield from _of_blocks(model)


def _of_blocks(model: Model) -> Iterator[Interval]:
    for timer, body in timed_blocks(model):
        queue = model.once(DeviceQueue)
        if not queue.runs_ahead or runs_on_host(timer, model) or run_on_cpu(model, [body]):
            continue
        state = queue.run([body], State())
        if state.queued is not None and state.queued.is_heavy and not state.waits:
            yield Interval(timer, timer, state.queued, Confidence.LIKELY)


@once
def differences(model: Model) -> Iterator[tuple[cst.Call, cst.Call]]:
    """Two readings of a clock, of which the difference is reported."""
    for end, since in _reported(model):
        start = reading(model, since)
        if start is not None and start is not end:
            yield start, end


def carried_differences(model: Model) -> Iterator[tuple[cst.Call, cst.Call]]:
    """Likewise, where the first reading is the last thing that the iteration before did."""
    for end, since in _reported(model):
        start = carried_reading(model, since)
        if start is not None and model.loop(end) is model.loop(start):
            yield start, end


def _reported(model: Model) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    if not any(call.callee in CLOCKS for call in model.calls):
        return
    for node in model.nodes_of(cst.BinaryOperation):
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract):
            end = reading(model, node.left)
            if end is not None and is_reported(model, node):
                yield end, node.right


def _interval(model: Model, queue: DeviceQueue, start: cst.Call, end: cst.Call) -> Interval | None:
    """None where the work is waited for; also where the next iteration waits for it, inside its own interval."""
    loop = model.loop(start)
    if model.function(start) is not model.function(end) or loop is not model.loop(end):
        return None
    if loop is not None and is_carried(model, loop, start, end):
        return _carried_interval(model, queue, loop, start, end)
    state = queue.between(start, end)
    if state is None or state.queued is None or hands_back_arrays(model, state.queued.node):
        return None
    if not state.waits:
        return Interval(start, end, state.queued, Confidence.CERTAIN)
    is_made_up_for = loop is not None and not waits_outside(model, queue, loop, start, end)
    if is_made_up_for or not _is_pass(model, state.queued):
        return None
    return Interval(start, end, state.queued, Confidence.LIKELY)


def _carried_interval(model: Model, queue: DeviceQueue, loop: Loop, start: cst.Call, end: cst.Call) -> Interval | None:
    """One that begins in the iteration before. Where that waited between the two readings, for what it had queued, no
    interval counts the wait."""
    state = over_the_edge(model, queue, loop, start, end)
    if state is None or state.queued is None or not _is_pass(model, state.queued):
        return None
    is_made_up_for = not waits_between(model, queue, loop, end, start)
    return None if is_made_up_for else Interval(start, end, state.queued, Confidence.LIKELY)


def _is_pass(model: Model, work: Work) -> bool:
    """Forward or back through a network: what is queued behind a wait for one is little beside it."""
    call = model.call(work.node) if isinstance(work.node, cst.Call) else None
    return call is not None and (call.is_forward or call.is_backward)


def _early_interval(model: Model, queue: DeviceQueue, start: cst.Call, end: cst.Call) -> Interval | None:
    """One that waits just before the second reading, also for a pass through a model that ran before the first."""
    function = model.function(start)
    if function is not model.function(end) or isinstance(function.node, cst.Lambda) or model.loop(start) is not None:
        return None
    if not follows_wait(end, model) or follows_wait(start, model):
        return None
    work = queue.before(start).queued
    if work is None or not work.is_heavy:
        return None
    return Interval(start, end, work, Confidence.LIKELY, is_early=True)
