"""Expressions that make a tensor of their own, with memory that nothing else holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.vocabulary import EXACT, MAKES_INEXACT, PRODUCTS, REDUCTIONS

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_FACTORIES = frozenset(
    "zeros ones full empty eye rand randn tensor Tensor arange zeros_like ones_like empty_like".split()
)
_VIEWS = frozenset("contiguous detach conj positive".split())
DIFFERENTIATED = (EXACT | MAKES_INEXACT | PRODUCTS | frozenset(REDUCTIONS)) - _VIEWS
_MAKING = DIFFERENTIATED | _FACTORIES


def makes_new_tensor(model: Model, node: cst.BaseExpression) -> bool:
    """Whether an expression makes a tensor that shares its memory with no other."""
    if isinstance(node, cst.BinaryOperation):
        return True
    if not isinstance(node, cst.Call):
        return False
    call = model.call(node)
    if call.callee is not None:
        return call.callee.startswith("torch.") and call.callee.rpartition(".")[2] in _MAKING
    return call.method == "clone"


def shares_no_graph(model: Model, binding: Binding) -> bool:
    """Whether no graph holds the memory of what is assigned to a variable: each value is a new tensor, or the output of
    a network that runs without gradients."""
    values = [write.value for write in binding.writes if write.kind == "assign" and not write.unpacked]
    return len(values) == len(binding.writes) > 0 and all(
        value is not None and (makes_new_tensor(model, value) or _is_evaluation(model, value)) for value in values
    )


def _is_evaluation(model: Model, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and model.call(node).is_forward and model.grad_enabled(node) is False
