"""Tensors that a step makes on the host and fills with what is on the device, to copy back what comes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.sync.branching import waiting_step
from torchlint.analyses.sync.detours import Walk
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.xfer.factories import agreement_of
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.analyses.loops.steps import Step
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model


class Filling(NamedTuple):
    """`node` is stored in a part of what `made` makes on the host; what is made of that goes back at `back`."""

    node: cst.BaseExpression
    made: Call
    back: cst.CSTNode
    step: Step


def fillings(model: Model) -> Iterator[Filling]:
    """Stores of what is on the device in a tensor of the host that lives for one step, or one iteration of it."""
    residence = model.once(Residence)
    for statement in model.nodes_of(cst.Assign):
        assert isinstance(statement, cst.Assign)
        filled = _filled(statement)
        made = _made(model, filled) if filled is not None and _may_be_device(model, statement.value) else None
        step = waiting_step(model, statement) if made is not None else None
        if filled is None or made is None or step is None or made.loop is not model.loop(statement):
            continue
        if not residence.may_be_device(statement.value, step):
            continue
        walk = Walk(model)
        binding = model.binding(filled)
        if binding is None or not walk.goes_back(*binding.reads) or not walk.works:
            continue
        back = walk.back.node if walk.back is not None else walk.picked
        if back is not None:
            yield Filling(statement.value, made, back, step)


def _filled(statement: cst.Assign) -> cst.Name | None:
    """`box` of `box[:, :2] = corner`."""
    match statement.targets:
        case [cst.AssignTarget(target=cst.Subscript(value=cst.Name() as name))]:
            return name
    return None


def _made(model: Model, filled: cst.Name) -> Call | None:
    """The call that makes the tensor on the host, of a size alone."""
    binding = model.binding(filled)
    value = binding.writes[0].value if binding is not None and len(binding.writes) == 1 else None
    call = model.call(value) if isinstance(value, cst.Call) else None
    return call if call is not None and agreement_of(call, model) is not None else None


def _may_be_device(model: Model, node: cst.BaseExpression) -> bool:
    value = model.value(node)
    return value.kind is Kind.TENSOR and value.place is not Place.HOST
