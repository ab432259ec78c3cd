"""Tensors that come of comparisons and indices alone, which never have a graph, however they are computed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_ASKING = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
_PLAIN = (Kind.NUMBER, Kind.STRING, Kind.DTYPE, Kind.DEVICE)


def comes_of_counts(node: cst.BaseExpression | None, model: Model, seen: frozenset[Binding] = frozenset()) -> bool:
    """`(a == b).nonzero()[:, 0].float().mean()`, through variables, too."""
    while isinstance(node, cst.Subscript):
        node = node.value
    if node is None:
        return False
    if isinstance(node, cst.Comparison):
        return not any(isinstance(part.operator, _ASKING) for part in node.comparisons)
    value = model.value(node)
    if value.kind is Kind.TENSOR and value.dtype in ("int", "bool"):
        return True
    if isinstance(node, cst.Name):
        return _is_counted(model.binding(node), model, seen)
    if isinstance(node, cst.Call):
        call = model.call(node)
        if call.target is not None or call.foreign is not None or call.is_forward or call.method == "requires_grad_":
            return False
        owner = call.receiver if call.receiver is not None and model.qualified(call.receiver) is None else None
        if owner is None and not (call.callee or "").startswith("torch."):
            return False
        parts = [*([owner] if owner is not None else []), *(arg.value for arg in node.args)]
    elif isinstance(node, cst.BinaryOperation):
        parts = [node.left, node.right]
    elif isinstance(node, cst.UnaryOperation):
        parts = [node.expression]
    else:
        return False
    counted = [part for part in parts if comes_of_counts(part, model, seen)]
    return bool(counted) and all(part in counted or model.value(part).is_(*_PLAIN) for part in parts)


def _is_counted(binding: Binding | None, model: Model, seen: frozenset[Binding]) -> bool:
    if binding is None or binding.cls is not None or binding.is_parameter or binding.is_global or binding.shared:
        return False
    if any(name.endswith("_") for name in binding.methods) or any(
        _is_written_into(read, model) for read in binding.reads
    ):
        return False
    if binding in seen:
        return True
    writes, seen = binding.writes, seen | {binding}
    return bool(writes) and all(
        write.kind == "assign" and not write.unpacked and comes_of_counts(write.value, model, seen) for write in writes
    )


def _is_written_into(read: cst.CSTNode, model: Model) -> bool:
    """`x[0] = y`, which brings the graph of y along."""
    node: cst.CSTNode | None = read
    while isinstance(above := model.parent(node) if node is not None else None, cst.Subscript) and above.value is node:
        node = above
    return node is not read and isinstance(above, (cst.AssignTarget, cst.AugAssign))
