"""Loops that read a tensor from the device number by number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import is_changed
from torchlint.semantics.residence import Residence
from torchlint.semantics.steps import Step, step_around
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Loop
    from torchlint.semantics.model import Model

_CONVERSIONS = ("builtins.int", "builtins.float")


@dataclass(eq=False, slots=True)
class ElementReads:
    """All reads of the elements of one tensor by one loop, none of which writes the tensor."""

    tensor: cst.BaseExpression
    loop: Loop
    step: Step
    is_iterated: bool  # the loop runs over the tensor itself, and not over its indices
    nodes: list[cst.Call] = field(default_factory=list)


def element_reads(model: Model) -> list[ElementReads]:
    found: dict[tuple[Loop, Binding | cst.BaseExpression], ElementReads] = {}
    residence = Residence(model)
    for node, element in _numbers(model):
        for loop, tensor, is_iterated in _sources(model, element):
            binding = model.binding(tensor)
            if binding is not None and _is_written(model, binding, loop):
                continue
            reads = found.get((loop, binding or tensor))
            if reads is None:
                step = step_around(model, node)
                if step is None or step.loop is loop or not residence.may_be_device(tensor, step):
                    continue
                reads = found[loop, binding or tensor] = ElementReads(tensor, loop, step, is_iterated)
            reads.nodes.append(node)
    return list(found.values())


def _numbers(model: Model) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """`x.item()`, `int(x)` and `float(x)`, with x."""
    for call in model.calls_to(".item", *_CONVERSIONS):
        if not call.loop:
            continue
        if call.callee in _CONVERSIONS:
            if len(call.arguments) == 1:
                yield call.node, call.arguments[0].value
        elif call.receiver is not None:
            yield call.node, call.receiver


def _sources(model: Model, element: cst.BaseExpression) -> Iterator[tuple[Loop, cst.BaseExpression, bool]]:
    """The tensor that the expression is one element of, and the loop over it or over its indices."""
    if isinstance(element, cst.Name):
        binding = model.binding(element)
        for loop in model.loops_around(element):
            tensor = _iterated(model, loop, binding) if binding is not None and not _is_rebound(binding, loop) else None
            if tensor is not None and model.value(tensor).is_(Kind.TENSOR, Kind.BATCH):
                yield loop, tensor, True
        return
    indices, base = _indexed(element)
    if not indices or model.binding(base) is None or not model.value(base).is_(Kind.TENSOR, Kind.BATCH):
        return
    bindings = [model.binding(index) for index in indices if isinstance(index, cst.Name)]
    counting = [loop for loop in model.loops_around(element) if _counter(model, loop) in bindings]
    if counting and all(model.value(index).kind is Kind.NUMBER for index in indices):
        yield counting[-1], base, False


def _iterated(model: Model, loop: Loop, binding: Binding) -> cst.BaseExpression | None:
    """What of `for x in t`, `for i, x in enumerate(t)` and `for x, y in zip(t, u)` is t for the variable x."""
    if loop.target is None or loop.iterable is None:
        return None
    if model.binding(loop.target) is binding:
        return loop.iterable
    call = model.call(loop.iterable) if isinstance(loop.iterable, cst.Call) else None
    if call is None or not isinstance(loop.target, cst.Tuple):
        return None
    offset = {"builtins.zip": 0, "builtins.enumerate": 1}.get(call.callee or "")
    for position, target in enumerate(loop.target.elements):
        if (
            offset is not None
            and model.binding(target.value) is binding
            and position - offset in range(len(call.arguments))
        ):
            return call.arguments[position - offset].value
    return None


def _counter(model: Model, loop: Loop) -> Binding | None:
    is_range = loop.target is not None and loop.iterates.ref == "builtins.range"
    return model.binding(loop.target) if is_range and loop.target is not None else None


def _indexed(node: cst.BaseExpression) -> tuple[list[cst.BaseExpression], cst.BaseExpression]:
    """The plain indices of `t[i][j]` or `t[i, j]`, and t; no indices where one of them is a slice."""
    indices: list[cst.BaseExpression] = []
    while isinstance(node, cst.Subscript):
        for element in node.slice:
            if not isinstance(element.slice, cst.Index):
                return [], node
            indices.append(element.slice.value)
        node = node.value
    return indices, node


def _is_rebound(binding: Binding, loop: Loop) -> bool:
    """Whether the loop gives its own variable another value."""
    writes = (write for write in binding.writes if write.statement is not loop.node and write.target is not loop.target)
    return any(write.loop is not None and loop in write.loop.around() for write in writes)


def _is_written(model: Model, binding: Binding, loop: Loop) -> bool:
    """Whether the loop binds the variable anew, or stores into it."""
    if any(loop in (write.loop.around() if write.loop is not None else ()) for write in binding.writes):
        return True
    inside = (read for read in binding.reads if loop in model.loops_around(read))
    return any(is_changed(model, read) for read in inside)
