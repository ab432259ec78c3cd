"""Work on tensors that the program has moved to the CPU where it is timed, as beside the same work on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.arguments import string_value
from torchlint.semantics.dataflow import given_to, writes_reaching
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_DEPTH = 6


def computes_on_cpu(model: Model, start: cst.CSTNode, end: cst.CSTNode) -> bool:
    """Whether the tensors and devices that are read between two statements of a block are those of the CPU, all of
    them."""
    return run_on_cpu(model, _between(model, start, end))


def run_on_cpu(model: Model, lines: Sequence[cst.CSTNode]) -> bool:
    """The same of these statements."""
    inside = {node for line in lines for node in walk(line)}
    known = [
        _is_cpu(model, node, 0) if model.value(node).kind is Kind.DEVICE else _is_on_cpu(model, node, 0)
        for node in inside
        if isinstance(node, cst.Name) and _comes_from_outside(model, node, inside)
    ]
    return bool(known) and all(known)


def _between(model: Model, start: cst.CSTNode, end: cst.CSTNode) -> list[cst.CSTNode]:
    first, last = model.statement(start), model.statement(end)
    body = list(getattr(model.parent(first), "body", ()))
    if first not in body or last not in body:
        return []
    return body[body.index(first) + 1 : body.index(last)]


def _comes_from_outside(model: Model, node: cst.Name, inside: set[cst.CSTNode]) -> bool:
    """Whether a tensor or a device is read that the lines themselves have not made."""
    binding = model.binding(node)
    if binding is None or node not in binding.reads or not model.value(node).is_(Kind.TENSOR, Kind.DEVICE):
        return False
    return not any(write.target in inside for write in binding.writes)


def _is_on_cpu(model: Model, node: cst.BaseExpression, depth: int) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))):
            if method == "cpu":
                return True
            if method == "to" and node.args:
                return _is_cpu(model, node.args[0].value, depth + 1)
            return method != "cuda" and depth < _DEPTH and _is_on_cpu(model, receiver, depth + 1)
        case cst.BinaryOperation(left=left):
            return depth < _DEPTH and _is_on_cpu(model, left, depth + 1)
        case cst.Name():
            return _all_writes(model, node, _is_on_cpu, depth)
    return False


def _is_cpu(model: Model, node: cst.BaseExpression, depth: int) -> bool:
    """`"cpu"`, `torch.device("cpu")`, or a variable of one of these."""
    if isinstance(node, cst.Call):
        made = model.call(node).callee == "torch.device" and len(node.args) == 1
        return made and string_value(node.args[0].value) == "cpu"
    if isinstance(node, cst.Name):
        return _all_writes(model, node, _is_cpu, depth)
    return string_value(node) == "cpu"


def _all_writes(
    model: Model, node: cst.Name, holds: Callable[[Model, cst.BaseExpression, int], bool], depth: int
) -> bool:
    values = list(_values(model, node))
    return (
        bool(values)
        and depth < _DEPTH
        and all(value is not None and holds(model, value, depth + 1) for value in values)
    )


def _values(model: Model, node: cst.Name) -> Iterator[cst.BaseExpression | None]:
    binding = model.binding(node)
    if binding is None:
        return
    for write in writes_reaching(model, binding, node):
        if write.kind == "parameter" and write.function.callers:
            yield from (next(given_to(call, binding), None) for call in write.function.callers)
        else:
            yield write.value if write.kind == "assign" else None
