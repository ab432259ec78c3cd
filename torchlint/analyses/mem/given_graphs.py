"""What functions of the file return for arguments without a graph, which others give graphs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.single_tensor import carries, is_graphless
from torchlint.semantics import torch_api
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

_DEPTH = 24  # of expressions in expressions, and of variables behind them
_STARTING = frozenset({"requires_grad_", "register_parameter"})


def is_given_no_graph(model: Model, node: cst.BaseExpression) -> bool:
    """Whether a value that is taken to have a graph was computed of tensors without one alone: `log_probs(out.logits)`
    of an output that came without, of a function that training calls with others."""
    return carries(model.value(node)) and _comes_without(model, node, _DEPTH)


def _comes_without(model: Model, node: cst.BaseExpression, depth: int) -> bool:
    value = model.value(node)
    if is_graphless(value):
        return True
    if not depth:
        return False
    match node:
        case cst.Name():
            binding = model.binding(node)
            made = writes_reaching(model, binding, node) if binding is not None else []
            if not any(write.kind == "assign" for write in made):
                return value.kind is Kind.UNKNOWN and not value.carries
            return all(
                write.kind == "assign"
                and not write.unpacked
                and write.value is not None
                and _comes_without(model, write.value, depth - 1)
                for write in made
            )
        case cst.Attribute():
            return value.kind is Kind.UNKNOWN and not value.carries
        case cst.BinaryOperation(left=left, right=right):
            return _comes_without(model, left, depth - 1) and _comes_without(model, right, depth - 1)
        case cst.UnaryOperation(expression=inner) | cst.Subscript(value=inner):
            return _comes_without(model, inner, depth - 1)
        case cst.Call():
            call = model.call(node)
            operands = [arg.value for arg in call.arguments]
            if _computes(call) and call.receiver is not None:
                of_tensor = model.value(call.receiver).kind is not Kind.FUNCTION  # and not `nn.functional`
                operands += [call.receiver] if of_tensor else []
            elif not _computes(call) and not _only_computes(model, call.target):
                return False
            return bool(operands) and all(_comes_without(model, operand, depth - 1) for operand in operands)
    return False


def _computes(call: Call) -> bool:
    """A function or method of torch that makes nothing that gradients are taken of."""
    if call.target is not None or call.is_forward or call.method in _STARTING:
        return False
    is_function = (call.callee or "").startswith("torch.") and call.callee != "torch.nn.Parameter"
    is_method = call.method is not None and torch_api.method(call.method) is not None
    return (is_function or is_method) and call.argument("requires_grad").absent


def _only_computes(model: Model, function: Function | None) -> bool:
    """Whether a function runs no network, and reads no tensor with a graph but what it is given."""
    if function is None or function.cls is not None or function.is_generator or model.effects(function).forwards:
        return False
    names = (node for node in walk(function.node) if isinstance(node, cst.Name) and carries(model.value(node)))
    return all((binding := model.binding(name)) is None or binding.scope_function is function for name in names)
