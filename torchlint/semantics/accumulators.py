"""Sums that a loop keeps on the host although only the total, behind the loop, is ever read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.entities import Binding, Loop, Write
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model
    from torchlint.semantics.readback import Readback

_NAMESPACE_READERS = frozenset(["locals", "globals", "vars", "eval", "exec", "dir"])
_CLOCKS = frozenset(f"time.{name}{ns}" for name in ("time", "perf_counter", "monotonic") for ns in ("", "_ns"))
_EXACT_FORMATS = ("f", "F", "e", "E", "%")


@dataclass(frozen=True, slots=True)
class HostSum:
    """`name = 0`, in a loop `name += term`, and reads behind the loop. `term` is one readback, or a multiple of it."""

    binding: Binding
    update: cst.AugAssign
    loop: Loop
    starts: tuple[cst.BaseExpression, ...]
    is_integer: bool  # integers all the way, on either side
    is_timed: bool  # the loop reads a clock, which stops waiting for the device once the sum stays there

    @property
    def reads(self) -> list[cst.Name]:
        return [read for read in self.binding.reads if isinstance(read, cst.Name)]


def host_sum(model: Model, read: Readback) -> HostSum | None:
    """The sum that a readback goes into, if nothing but this function and its reads behind the loop can tell where it
    is kept."""
    update = _update(model, read)
    if update is None or read.loop is None or not isinstance(update.target, cst.Name):
        return None
    binding = model.binding(update.target)
    if binding is None or binding.shared or binding.is_parameter or binding.cls is not None:
        return None
    starts = _starts(binding)
    is_integer = read.is_count and all(isinstance(start, cst.Integer) for start in starts)
    if not starts or not all(_keeps_exact(model, write, update, read.loop, is_integer) for write in binding.writes):
        return None
    if not all(_is_plain_read(model, name, read.loop) for name in binding.reads):
        return None
    if _has_other_rules(model, update, read.loop):
        return None
    is_timed = any(call.callee in _CLOCKS for call in read.loop.calls)
    return HostSum(binding, update, read.loop, starts, is_integer, is_timed)


def survives_empty_loop(model: Model, total: HostSum) -> bool:
    """Whether no read can tell an integer 0 from 0.0, which is what it sees after a loop that never ran."""
    if total.is_integer or all(isinstance(start, cst.Float) for start in total.starts):
        return True
    return all(_hides_type(model, read) for read in total.reads)


def is_wrapped(model: Model, read: cst.Name, *casts: str) -> bool:
    """Whether the read is all that `int(...)` or `float(...)` is called on."""
    call = model.parent(model.parent(read) or read)
    return isinstance(call, cst.Call) and model.call(call).callee in casts and len(call.args) == 1


# -- the loop --------------------------------------------------------------------------------------------------------


def _update(model: Model, read: Readback) -> cst.AugAssign | None:
    """The `+=` that adds the readback, or its product with Python numbers."""
    node: cst.CSTNode = read.node
    parent = model.parent(node)
    while isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.Multiply):
        other = parent.right if parent.left is node else parent.left
        if model.value(other).kind is not Kind.NUMBER or model.value(other).optional:
            return None
        node, parent = parent, model.parent(parent)
    if isinstance(parent, cst.AugAssign) and isinstance(parent.operator, cst.AddAssign) and parent.value is node:
        return parent
    return None


def _starts(binding: Binding) -> tuple[cst.BaseExpression, ...]:
    values = [write.value for write in binding.writes if write.kind == "assign" and not write.unpacked]
    return tuple(value for value in values if isinstance(value, (cst.Integer, cst.Float)))


def _keeps_exact(model: Model, write: Write, update: cst.AugAssign, loop: Loop, is_integer: bool) -> bool:
    """Whether the write leaves the same sum, on the device as on the host."""
    if write.target is update.target:
        return True
    if loop in model.loops_around(write.statement):
        return False
    if write.kind == "assign" and not write.unpacked:
        return isinstance(write.value, (cst.Integer, cst.Float))
    if write.kind != "augmented" or write.loop is None or write.value is None:
        return False
    value = model.value(write.value)
    if is_integer or value.kind is Kind.NUMBER:
        return value.is_(Kind.NUMBER, Kind.TENSOR) and (not is_integer or value.dtype in ("int", "bool"))
    return value.kind is Kind.TENSOR and any(_is_double(factor) for factor in _factors(write.value))


def _factors(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def _is_double(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "double"


def _has_other_rules(model: Model, update: cst.AugAssign, loop: Loop) -> bool:
    """Whether the readback does more than its number: an exception is caught, an asynchronous copy waits for it."""
    for above in model.ancestors(update):
        if above is loop.node:
            break
        if isinstance(above, cst.Try):
            return True
    function = model.function(update)
    if any(isinstance(c.node.func, cst.Name) and c.node.func.value in _NAMESPACE_READERS for c in function.calls):
        return True
    return any(_is_asynchronous(call.method, call.callee, call.node) for call in loop.calls)


def _is_asynchronous(method: str | None, callee: str | None, node: cst.Call) -> bool:
    if method in ("record_stream", "wait_stream") or (callee or "").endswith(".Stream"):
        return True
    blocking = any(arg.keyword is not None and arg.keyword.value == "non_blocking" for arg in node.args)
    to_host = any(isinstance(arg.value, cst.SimpleString) and "cpu" in arg.value.value for arg in node.args)
    return blocking and (method in ("copy_", "cpu") or to_host)


# -- the reads -------------------------------------------------------------------------------------------------------


def _is_plain_read(model: Model, read: cst.CSTNode, loop: Loop) -> bool:
    """Behind the loop, and in a place where `float(name)` can stand for `name`."""
    parent = model.parent(read)
    if isinstance(parent, (cst.Del, cst.FormattedStringExpression)) and getattr(parent, "equal", None) is not None:
        return False
    return not any(above is loop.node for above in model.ancestors(read)) and not isinstance(parent, cst.Del)


def _hides_type(model: Model, read: cst.CSTNode) -> bool:
    parent = model.parent(read)
    match parent:
        case cst.BinaryOperation(operator=cst.Divide(), left=left):
            return left is read
        case cst.BinaryOperation(operator=cst.Multiply()):
            return any(model.value(side).dtype == "float" for side in (parent.left, parent.right))
        case cst.FormattedStringExpression(format_spec=[cst.FormattedStringText(value=spec)]):
            return spec.endswith(_EXACT_FORMATS)
        case cst.Arg():
            return is_wrapped(model, read, "builtins.float")  # type: ignore[arg-type]
    return False
