"""Assertions about tensors on the device: those that are worth a synchronisation, and those that add none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_FINITE = re.compile(r"^is_?(nan|inf|finite)$")
_READING = frozenset({"item", "tolist", "cpu", "numpy"})


def is_worth_its_wait(model: Model, claim: cst.CSTNode, tensor: cst.BaseExpression) -> bool:
    """Whether a claim says that numbers are finite, without which all that follows is lost, or is about a tensor that
    the same function reads besides, and so waits for in any case."""
    return any(_asks_for_finite(model, node) for node in walk(tensor)) or _is_read_besides(model, claim, tensor)


def _asks_for_finite(model: Model, node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call):
        return False
    call = model.call(node)
    return _FINITE.match(call.method or (call.callee or "").rpartition(".")[2]) is not None


def _is_read_besides(model: Model, claim: cst.CSTNode, tensor: cst.BaseExpression) -> bool:
    inside = set(walk(claim))
    names = (
        node for node in walk(tensor) if isinstance(node, cst.Name) and model.value(node).is_(Kind.TENSOR, Kind.BATCH)
    )
    bindings = (model.binding(name) for name in names)
    reads = (read for binding in bindings if binding is not None for read in binding.reads if read not in inside)
    return any(_is_read_back(model, read) and _is_read_wherever(model, read, claim) for read in reads)


def _is_read_wherever(model: Model, read: cst.CSTNode, claim: cst.CSTNode) -> bool:
    """Whether the iterations of a loop that make a claim also come to a read, as far as conditions say."""
    if model.function(read) is not model.function(claim) or model.loops_around(read) != model.loops_around(claim):
        return False
    return {*model.guards(read)} <= {*model.guards(claim)}


def _is_read_back(model: Model, read: cst.CSTNode) -> bool:
    """`x[:, 1:3].tolist()`, `x[0].item()`: numbers that `x` has, and not what is computed of it."""
    node: cst.CSTNode | None = read
    while isinstance(above := model.parent(node) if node is not None else None, cst.Subscript) and above.value is node:
        node = above
    return isinstance(above, cst.Attribute) and above.attr.value in _READING
