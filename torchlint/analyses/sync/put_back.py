"""Numbers that a step reads from the device only to compute with tensors of the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.loops.steps import Step
from torchlint.analyses.sync.branching import follows_answer, waiting_step
from torchlint.analyses.sync.readback import reads
from torchlint.analyses.sync.residence import Residence
from torchlint.semantics.dataflow import parameter_of_function, upstream
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_DEPTH = 2  # functions that hand the number on


class PutBack(NamedTuple):
    node: cst.Call
    tensor: cst.BaseExpression
    step: Step


def numbers_put_back(model: Model) -> Iterator[PutBack]:
    """Numbers that are read from the device in each step only to meet tensors there again."""
    residence = model.once(Residence)
    for node, tensor, how in reads(model):
        if how not in ("item", "float") or not _only_meets_tensors(model, node):
            continue
        step = waiting_step(model, node)
        if step is None:
            continue
        if not residence.may_be_device(tensor, step, is_tensor=how == "item") and not _is_given(model, tensor, step):
            continue
        if not follows_answer(model, residence, node, step):
            yield PutBack(node, tensor, step)


def _is_given(model: Model, tensor: cst.BaseExpression, step: Step) -> bool:
    """Whether a function of which each call is a step computes the tensor from what it is given, as a loss does."""
    function, value = model.function(tensor), model.value(tensor)
    if step.loop is not None or value.kind is not Kind.TENSOR or value.place is Place.HOST:
        return False
    is_given = any(binding.is_parameter and binding.cls is None for binding in upstream(model, tensor))
    return is_given and model.once(Residence).may_run_on_device(function)


def _only_meets_tensors(model: Model, number: cst.BaseExpression) -> bool:
    """Whether all that is done with a number is to compute with a tensor that is not on the host."""
    statement = model.parent(number)
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            binding = model.binding(name)
            if binding is None or binding.shared or binding.is_global:
                return False
            return _all_meet_tensors(model, binding, _DEPTH)
    return _meets_tensor(model, number, _DEPTH)


def _all_meet_tensors(model: Model, binding: Binding, depth: int) -> bool:
    is_one_value = len(binding.writes) == 1 and bool(binding.reads)
    return is_one_value and all(_meets_tensor(model, read, depth) for read in binding.reads)


def _meets_tensor(model: Model, number: cst.CSTNode, depth: int) -> bool:
    """Also where a constant is added to the number first: `x / (n.item() + 1e-8)`; and in a function of the project
    that is given it."""
    parent = model.parent(number)
    while isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, _OPERATORS):
        other = model.value(parent.right if parent.left is number else parent.left)
        if other.kind is Kind.TENSOR:
            is_inside = depth < _DEPTH  # others may call that function with tensors of the host
            return other.place is Place.ACCELERATOR if is_inside else other.place is not Place.HOST
        if other.kind is not Kind.NUMBER:
            return False
        number, parent = parent, model.parent(parent)
    return isinstance(parent, cst.Arg) and depth > 0 and _is_given_to_tensors(model, parent, depth)


def _is_given_to_tensors(model: Model, arg: cst.Arg, depth: int) -> bool:
    site = model.parent(arg)
    if not isinstance(site, cst.Call):
        return False
    call = model.call(site)
    entered = (model, call.target) if call.target is not None else model.elsewhere(call)
    parameter = parameter_of_function(call, entered[1], arg) if entered is not None else None
    return entered is not None and parameter is not None and _all_meet_tensors(entered[0], parameter, depth - 1)
