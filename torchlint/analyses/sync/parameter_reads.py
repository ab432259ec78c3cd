"""Loops over the parameters of a model that read a number of each from the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.devices.host_calls import is_log
from torchlint.analyses.devices.host_use import KEPT, HostFlow
from torchlint.analyses.loops.steps import Step, step_around
from torchlint.analyses.once import once
from torchlint.analyses.sync.branching import follows_answer
from torchlint.analyses.sync.readback import reads
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.sync.shown import shown_in
from torchlint.semantics.entities import Loop, Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class ParameterRead(NamedTuple):
    """A number that is read for each parameter of a model."""

    node: cst.Call
    tensor: cst.BaseExpression
    how: str  # item, float, int or log
    loop: Loop
    step: Step


@once
def parameter_reads(model: Model) -> Iterator[ParameterRead]:
    """Those in each step that nothing in the step needs."""
    residence = model.once(Residence)
    over_parameters = {loop for loop in model.loops if _is_over_parameters(model, loop)}
    for node, tensor, how in _numbers(model) if over_parameters else ():
        loop = next((loop for loop in model.loops_around(node) if loop in over_parameters), None)
        if loop is None or not _is_of(model, tensor, loop) or model.value(tensor).place is Place.HOST:
            continue
        step = step_around(model, node)
        is_needed = how != "log" and HostFlow(model, loop).of(node, True) & KEPT
        if step is None or is_needed or not residence.may_run_on_device(model.function(node)):
            continue
        if not follows_answer(model, residence, node, step):
            yield ParameterRead(node, tensor, how, loop, step)


def _numbers(model: Model) -> Iterator[tuple[cst.Call, cst.BaseExpression, str]]:
    for node, tensor, how in reads(model):
        if how in ("item", "float", "int"):
            if model.value(tensor).kind is not Kind.NUMBER:  # `float(x.item())`
                yield node, tensor, how
        elif (shown := _shown_by(model, node)) is not None:
            yield shown, tensor, "log"
    for call in model.calls:
        if call.loop is not None:
            yield from ((call.node, tensor, "log") for tensor in shown_in(model, call)[:1])


def _shown_by(model: Model, copy: cst.CSTNode) -> cst.Call | None:
    """The call that logs a copy on the host as it is: `writer.add_histogram(name, grad.cpu().numpy())`."""
    above = model.parent(copy)
    while isinstance(above, cst.Attribute) and isinstance(call := model.parent(above), cst.Call):
        above = model.parent(call)
    site = model.parent(above) if isinstance(above, cst.Arg) else None
    return site if isinstance(site, cst.Call) and is_log(model.call(site)) else None


def _is_over_parameters(model: Model, loop: Loop) -> bool:
    """`model.parameters()` and the like, and any loop that asks its elements for their gradient; not one that runs
    several models."""
    if loop.role is Role.MODULES:
        return not any(loop in call.loops() for call in model.effects(loop).forwards)
    binding = model.binding(loop.target) if isinstance(loop.target, cst.Name) else None
    reads_of = binding.reads if binding is not None else []
    parents = (model.parent(read) for read in reads_of)
    return any(isinstance(parent, cst.Attribute) and parent.attr.value == "grad" for parent in parents)


def _is_of(model: Model, tensor: cst.BaseExpression, loop: Loop) -> bool:
    """Whether the tensor is computed from what the loop runs over."""
    for node in walk(tensor):
        binding = model.binding(node) if isinstance(node, cst.Name) else None
        writes = binding.writes if binding is not None else []
        if any(write.statement is loop.node or write.loop is loop for write in writes):
            return True
    return False
