"""Functions that compute a loss for whoever trains: `def calc_loss(self, x, y): ...; return loss`, which nobody in
sight calls, be it that the object is one of several or that a registry holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.provenance import calls_behind
from torchlint.analyses.modules.parameter_free import is_parameter_free_pass, module_of
from torchlint.semantics.dataflow import upstream
from torchlint.semantics.values import Grad, Kind
from torchlint.semantics.vocabulary import is_loss_function, is_loss_module

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

_DEPTH = 2


def lone_losses(model: Model) -> frozenset[Function]:
    """Functions that return a loss of what they are given, alone or among other things, with the graph that somebody
    goes back through."""
    return frozenset(function for function in model.functions if _computes_loss(model, function))


def _computes_loss(model: Model, function: Function) -> bool:
    """One that trains, or goes over data, gives the last loss of many; one of a test is called once."""
    if function.is_module or function.is_generator or function.callers or function.foreign_callers:
        return False
    if function.is_step or function.is_pass or function.name.startswith(("__", "test_")):
        return False
    if not _returns_loss(model, function, _DEPTH) or not _is_of_given_data(model, function):
        return False
    return not _begins_anew(model, function) and not any(True for _ in model.calls_elsewhere(function))


def _is_of_given_data(model: Model, function: Function) -> bool:
    """Whether what is returned is computed of what the function is given, other than networks: one that takes data of
    its own, the first batch of a loader perhaps, is a demonstration."""
    returned = [node.value for node in function.returns if node.value is not None]
    given = {binding for node in returned for binding in upstream(model, node) if binding.is_parameter}
    return any(
        binding.scope_function is function and not _is_network(model, binding) and binding.name != function.own_name
        for binding in given
    )


def _is_network(model: Model, binding: Binding) -> bool:
    return any(model.value(read).kind is Kind.MODULE for read in binding.reads)


def _begins_anew(model: Model, function: Function) -> bool:
    """Whether a function runs a network that it makes or loads itself: `main`, or a trial of a search."""
    passes = (call for call in function.calls if call.is_forward and not is_parameter_free_pass(model, call))
    return any(_is_made_in(model, function, module_of(call)) for call in passes)


def _is_made_in(model: Model, function: Function, module: cst.BaseExpression) -> bool:
    binding = model.binding(module)
    if binding is None or binding.is_parameter or binding.scope_function is not function or binding.cls is not None:
        return False
    return any(isinstance(write.value, cst.Call) and _makes(model, write.value) for write in binding.writes)


def _makes(model: Model, node: cst.Call) -> bool:
    """`Net(width).cuda()` and `nets.load(path)`, but not `self.net.cuda()`, a method of what there is."""
    while isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Call):
        node = node.func.value
    return isinstance(node.func, cst.Name) or model.qualified(node.func) is not None


def _returns_loss(model: Model, function: Function, depth: int) -> bool:
    return any(_is_loss(model, part, depth) for node in function.returns for part in _parts(node.value))


def _parts(node: cst.BaseExpression | None) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.Tuple):
        yield from (element.value for element in node.elements)
    elif node is not None:
        yield node


def _is_loss(model: Model, node: cst.BaseExpression, depth: int) -> bool:
    value = model.value(node)
    if value.kind is not Kind.TENSOR or value.grad is not Grad.CARRIES or value.rank not in (0, None):
        return False
    return any(_reduces(model, call, depth) for call in calls_behind(model, node))


def _reduces(model: Model, call: Call, depth: int) -> bool:
    """`F.cross_entropy(...)`, `nn.CrossEntropyLoss()(...)`, `self.criterion(...)`, and functions of the file that
    return such a loss."""
    if is_loss_function(call.callee or "") or is_loss_module(model.value(call.node.func).ref or ""):
        return True
    return depth > 0 and call.target is not None and _returns_loss(model, call.target, depth - 1)
