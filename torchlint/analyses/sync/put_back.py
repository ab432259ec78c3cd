"""Numbers that a step reads from the device only to compute with tensors of the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.loops.steps import Step
from torchlint.analyses.sync.branching import follows_answer, waiting_step
from torchlint.analyses.sync.readback import reads
from torchlint.analyses.sync.residence import Residence
from torchlint.semantics.dataflow import upstream
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)


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
            is_one_value = len(binding.writes) == 1 and bool(binding.reads)
            return is_one_value and all(_meets_tensor(model, read) for read in binding.reads)
    return _meets_tensor(model, number)


def _meets_tensor(model: Model, number: cst.CSTNode) -> bool:
    """Also where a constant is added to the number first: `x / (n.item() + 1e-8)`."""
    parent = model.parent(number)
    while isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, _OPERATORS):
        other = model.value(parent.right if parent.left is number else parent.left)
        if other.kind is Kind.TENSOR:
            return other.place is not Place.HOST
        if other.kind is not Kind.NUMBER:
            return False
        number, parent = parent, model.parent(parent)
    return False
