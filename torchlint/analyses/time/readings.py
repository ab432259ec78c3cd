"""Readings of the host's clock, and what becomes of the difference of two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.housekeeping import CLOCKS
from torchlint.semantics.dataflow import reaches, writes_reaching
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model


_DEPTH = 3
_ROUNDING = ("builtins.int", "builtins.round", "builtins.float")


def reading(model: Model, node: cst.BaseExpression, depth: int = _DEPTH) -> cst.Call | None:
    """The call that read the clock for a value, if it is one call for sure; also through `start = end`."""
    if isinstance(node, cst.Call):
        return node if reads_clock(model.call(node)) else None
    binding = model.binding(node)
    if binding is None:
        return None
    function = model.function(node)
    writes = [write for write in writes_reaching(model, binding, node) if write.function is function]
    if len(writes) != 1 or (binding.cls is None and len(writes) != len(_written_here(model, binding, node))):
        return None
    value = writes[0].value
    if writes[0].unpacked or writes[0].kind != "assign":
        return None
    if isinstance(value, cst.Name) and depth:
        return reading(model, value, depth - 1)
    if not isinstance(value, cst.Call):
        return None
    return value if reads_clock(model.call(value)) else None


def _written_here(model: Model, binding: Binding, node: cst.CSTNode) -> list[cst.CSTNode]:
    """Writes that may be read here, those of other functions included."""
    return [write.target for write in writes_reaching(model, binding, node)]


def reads_clock(call: Call) -> bool:
    """A clock, or a function of the project that reads one, be it in milliseconds, and does nothing else."""
    if call.callee in CLOCKS:
        return True
    target = call.target or call.foreign
    clocks = [inner for inner in target.calls if inner.callee in CLOCKS] if target is not None else []
    if (
        target is None
        or len(clocks) != 1
        or any(inner.callee not in _ROUNDING for inner in target.calls if inner is not clocks[0])
    ):
        return False
    returned = _returned(target)
    return returned is not None and any(node is clocks[0].node for node in walk(returned))


def _returned(function: Function) -> cst.BaseExpression | None:
    if isinstance(function.node, cst.Lambda):
        return function.node.body
    return function.returns[0].value if len(function.returns) == 1 else None


def is_reported(model: Model, difference: cst.CSTNode) -> bool:
    """Whether a time is printed, kept or handed on, and not only compared with a limit, or left in `if False:`."""
    if model.never_runs(difference):
        return False
    node: cst.CSTNode = difference
    for above in model.ancestors(difference):
        match above:
            case cst.Comparison() | cst.ComparisonTarget() | cst.While() | cst.Assert():
                return False
            case (
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)])
                | cst.AugAssign(target=cst.Name() as name)
            ):
                return _is_read(model, name)
            case cst.BaseSmallStatement():
                return not isinstance(above, cst.Expr) or above.value is not difference
            case cst.BaseCompoundStatement():
                return False
        node = above
    return node is not difference


def _is_read(model: Model, name: cst.Name) -> bool:
    binding = model.binding(name)
    if binding is None:
        return False
    return any(
        read is not name
        and reaches(model, binding, name, read)
        and not (_is_compared(model, read) or model.never_runs(read))
        for read in binding.reads
    )


def _is_compared(model: Model, read: cst.CSTNode) -> bool:
    return isinstance(model.parent(read), (cst.Comparison, cst.ComparisonTarget))
