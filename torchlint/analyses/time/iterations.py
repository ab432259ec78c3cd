"""Intervals that each iteration of a loop times: where they lie in it, and what it waits for outside of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.steps import is_gated
from torchlint.analyses.time.device_queue import BLOCKS, DeviceQueue, State
from torchlint.analyses.time.readings import reads_clock

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model


def carried_reading(model: Model, node: cst.BaseExpression) -> cst.Call | None:
    """The last reading of a clock in the body of a loop, for the next iteration to count from: `end = time.time()`."""
    binding, loop = model.binding(node), model.loop(node)
    if binding is None or loop is None or not isinstance(loop.node, cst.For):
        return None
    inside = [write for write in binding.writes if write.loop is not None and loop in write.loop.around()]
    if len(inside) != 1 or inside[0].kind != "assign" or inside[0].unpacked or len(binding.writes) == 1:
        return None
    value = inside[0].value
    if not isinstance(value, cst.Call) or not reads_clock(model.call(value)):
        return None
    is_plain = model.statement(value) in [*loop.body]
    return value if is_plain and is_carried(model, loop, value, node) else None


def is_carried(model: Model, loop: Loop, start: cst.CSTNode, end: cst.CSTNode) -> bool:
    """Whether the body of a loop begins to count only behind the place where it stops."""
    return _place(model, loop, start) > _place(model, loop, end)


def over_the_edge(model: Model, queue: DeviceQueue, loop: Loop, start: cst.Call, end: cst.Call) -> State | None:
    """What is queued when the next iteration reaches a node, from another node of the body of the loop on."""
    body: list[cst.CSTNode] = [*loop.body]
    last = _place(model, loop, end)
    state = queue.run(body[:last], queue.run(body[_place(model, loop, start) + 1 :], State()))
    return queue.until(body[last], end, state)


def waits_between(model: Model, queue: DeviceQueue, loop: Loop, first: cst.CSTNode, last: cst.CSTNode) -> bool:
    """Whether each iteration waits somewhere between two statements of its body."""
    body: list[cst.CSTNode] = [*loop.body]
    return _waits(model, queue, loop, body[_place(model, loop, first) + 1 : _place(model, loop, last)])


def waits_outside(model: Model, queue: DeviceQueue, loop: Loop, start: cst.CSTNode, end: cst.CSTNode) -> bool:
    """Whether each iteration waits before it reaches `start`, or after `end`."""
    body: list[cst.CSTNode] = [*loop.body]
    if _waits(model, queue, loop, body[: _place(model, loop, start)]):
        return True
    child, last = end, body[_place(model, loop, end)]
    for above in queue.way_up(end)[1:]:
        if isinstance(above, BLOCKS):
            siblings: list[cst.CSTNode] = [*above.body]
            if _waits(model, queue, loop, siblings[siblings.index(child) + 1 :]):
                return True
        if child is last:
            return False
        child = above
    return False


def _waits(model: Model, queue: DeviceQueue, loop: Loop, statements: Sequence[cst.CSTNode]) -> bool:
    """At log intervals is not each time."""
    regular = (node for node in statements if not (isinstance(node, cst.If) and is_gated(model, node.body, loop)))
    return queue.run(regular, State()).waits > 0


def _place(model: Model, loop: Loop, node: cst.CSTNode) -> int:
    """Which statement of the body of a loop a node is in."""
    above = {node, *model.ancestors(node)}
    return next(index for index, statement in enumerate(loop.body) if statement in above)
