"""Computations from parameters of modules and from arguments, whose graph a backward pass goes through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data_attribute.chain import VIEWS
from torchlint.analyses.new_tensors import DIFFERENTIATED
from torchlint.analyses.single_tensor import carries, is_graphless
from torchlint.semantics.tree import children, last_name, walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_tensor_method
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

GRAPHLESS_ATTRIBUTES = frozenset(["data", "grad", "shape", "dtype", "device", "requires_grad", "ndim", "is_cuda"])
# They save nothing for a backward pass, which may go through them as often as it likes.
MOVES = VIEWS | word_set(
    "to cuda cpu float double half bfloat16 type type_as clone requires_grad_ retain_grad pin_memory"
)


def computes_of_given(model: Model, value: cst.BaseExpression) -> bool:
    """Whether a value is computed of what callers out of sight give, which may want gradients: a second pass misses
    what the first one lets go. What only moves a tensor keeps nothing."""
    return any(_is_given(model, part) for part in _computed_with(model, value))


def computes_of_module(model: Model, value: cst.BaseExpression) -> bool:
    """`layer.weight.exp()`"""
    return any(is_of_module(model, part) for part in _computed_with(model, value))


def _computed_with(model: Model, value: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    """All that stands within computations."""
    work: list[cst.CSTNode] = [value]
    for node in work:  # it grows while the loop runs
        is_computation = isinstance(node, cst.Call) and _is_computation(model, model.call(node))
        if is_computation or isinstance(node, cst.BinaryOperation):
            yield from walk(node)
        else:
            work.extend(children(node))


def _is_computation(model: Model, call: Call) -> bool:
    name = call.method or last_name(call.node.func)
    is_known = name in DIFFERENTIATED or is_tensor_method(name)
    return is_known and name not in MOVES and call.value.is_(Kind.TENSOR, Kind.UNKNOWN)


def _is_given(model: Model, node: cst.CSTNode) -> bool:
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    if binding is None or not binding.is_parameter:
        return False
    value = binding.scope_function.parameter(binding.name)
    if binding.scope_function.callers:
        return carries(value)
    return not is_graphless(value) and value.is_(Kind.TENSOR, Kind.UNKNOWN)


def is_of_module(model: Model, node: cst.CSTNode) -> bool:
    """`layer.weight`, which for all that is known takes gradients."""
    if not isinstance(node, cst.Attribute) or node.attr.value in GRAPHLESS_ATTRIBUTES or _is_called(model, node):
        return False
    owner, part = model.value(node.value), model.value(node)
    return owner.kind is Kind.MODULE and part.is_(Kind.TENSOR, Kind.UNKNOWN) and not is_graphless(part)


def _is_called(model: Model, node: cst.CSTNode) -> bool:
    above = model.parent(node)
    return isinstance(above, cst.Call) and above.func is node
