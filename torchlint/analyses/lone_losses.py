"""Functions that compute a loss for whoever trains: `def calc_loss(self, x, y): ...; return loss`, which nobody in
sight calls, be it that the object is one of several or that a registry holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.sync.provenance import calls_behind
from torchlint.semantics.values import Grad, Kind
from torchlint.semantics.vocabulary import is_loss_function, is_loss_module

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

_DEPTH = 2


def lone_losses(model: Model) -> frozenset[Function]:
    """Functions that return a loss, alone or among other things, with the graph that somebody goes back through."""
    return frozenset(function for function in model.functions if _computes_loss(model, function))


def _computes_loss(model: Model, function: Function) -> bool:
    """One that trains, or goes over data, gives the last loss of many; one of a test is called once."""
    if function.is_module or function.is_generator or function.callers or function.foreign_callers:
        return False
    if function.is_step or function.is_pass or function.name.startswith(("__", "test_")):
        return False
    return _returns_loss(model, function, _DEPTH) and not any(True for _ in model.calls_elsewhere(function))


def _returns_loss(model: Model, function: Function, depth: int) -> bool:
    return any(_is_loss(model, part, depth) for node in function.returns for part in _parts(node.value))


def _parts(node: cst.BaseExpression | None) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.Tuple):
        yield from (element.value for element in node.elements)
    elif node is not None:
        yield node


def _is_loss(model: Model, node: cst.BaseExpression, depth: int) -> bool:
    value = model.value(node)
    if value.kind is not Kind.TENSOR or value.grad is Grad.DETACHED or value.rank not in (0, None):
        return False
    return any(_reduces(model, call, depth) for call in calls_behind(model, node))


def _reduces(model: Model, call: Call, depth: int) -> bool:
    """`F.cross_entropy(...)`, `nn.CrossEntropyLoss()(...)`, `self.criterion(...)`, and functions of the file that
    return such a loss."""
    if is_loss_function(call.callee or "") or is_loss_module(model.value(call.node.func).ref or ""):
        return True
    return depth > 0 and call.target is not None and _returns_loss(model, call.target, depth - 1)
