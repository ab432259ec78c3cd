"""How many iterations a loop has, where the code says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.frameworks import is_of_epoch
from torchlint.semantics.tree import walk
from torchlint.semantics.vocabulary import ITERATION_WRAPPERS

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop, Write
    from torchlint.semantics.model import Model

FEW = 6
_GROWING = frozenset({"append", "extend", "insert"})


def runs_few_times(model: Model, loop: Loop) -> bool:
    """Whether it is known to run less often than is worth a word."""
    if _is_over_dimensions(loop):
        return True
    count = rounds(model, loop)
    if count is None and loop.iterable is not None:
        count = _limit(model, loop.iterable)
    return count is not None and count < FEW


def _is_over_dimensions(loop: Loop) -> bool:
    """Whether a loop runs over the dimensions of a tensor: `range(len(x.shape))`, `range(x.dim())`."""
    match loop.iterable:
        case cst.Call(func=cst.Name("range"), args=[*_, cst.Arg(value=count)]):
            return _counts_dimensions(count)
        case cst.Call(func=cst.Name("enumerate"), args=[cst.Arg(value=shape), *_]):
            return _is_shape(shape)
    return loop.iterable is not None and _is_shape(loop.iterable)


def _counts_dimensions(count: cst.BaseExpression) -> bool:
    match count:
        case cst.Call(func=cst.Name("len"), args=[cst.Arg(value=shape)]):
            return _is_shape(shape)
        case cst.Call(func=cst.Attribute(attr=cst.Name("dim" | "ndimension")), args=[]):
            return True
        case cst.Attribute(attr=cst.Name("ndim")):
            return True
    return False


def _is_shape(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("size")), args=[]):
            return True
        case cst.Attribute(attr=cst.Name("shape")):
            return True
    return False


def rounds(model: Model, loop: Loop) -> int | None:
    """How often a loop runs, where the file says so."""
    count = _count(model, loop.iterable) if loop.iterable is not None else None
    return count if count is not None else _unpacked(model, loop)


def _limit(model: Model, over: cst.BaseExpression) -> int | None:
    """`3` of `range(min(len(x), 3))`, and of a name for what is written so."""
    match over:
        case cst.Call(args=[cst.Arg(value=stop, star="")]) if model.qualified(over.func) == "builtins.range":
            binding = model.binding(stop)
            if binding is not None and len(binding.writes) == 1 and not binding.writes[0].unpacked:
                stop = binding.writes[0].value or stop
            if isinstance(stop, cst.Call) and model.qualified(stop.func) == "builtins.min":
                values = (arg.value for arg in stop.args if arg.keyword is None)
                return min((n for value in values if (n := _number(model, value)) is not None), default=None)
    return None


def _unpacked(model: Model, loop: Loop) -> int | None:
    """How many names there are for what a comprehension makes: `left, right = [net(x) for x in pair]`."""
    comprehension = model.parent(loop.node)
    if not isinstance(comprehension, (cst.ListComp, cst.GeneratorExp)):
        return None
    match model.parent(comprehension):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=names) | cst.List(elements=names))]):
            return len(names) if not any(isinstance(name, cst.StarredElement) for name in names) else None
    return None


def _count(model: Model, node: cst.BaseExpression) -> int | None:
    if isinstance(node, (cst.Tuple, cst.List)):
        return len(node.elements) if not any(isinstance(part, cst.StarredElement) for part in node.elements) else None
    if isinstance(node, cst.Name):
        return _count_written(model, node)
    if not isinstance(node, cst.Call) or not node.args:
        return None
    name = model.qualified(node.func) or ""
    first = node.args[0].value
    counts = [count for argument in node.args if (count := _count(model, argument.value)) is not None]
    if name == "builtins.zip":
        return min(counts, default=None)
    if name == "itertools.product":  # as with loops in loops, none of them has many rounds where each has few
        return max(counts) if len(counts) == len(node.args) else None
    if name == "builtins.enumerate" or ITERATION_WRAPPERS.fullmatch(name):
        return _count(model, first)
    if name != "builtins.range" or any(argument.star for argument in node.args):
        return None
    bounds = [bound for argument in node.args if (bound := _number(model, argument.value)) is not None]
    if len(bounds) < len(node.args):
        return None
    try:
        return len(range(*bounds))
    except (TypeError, ValueError, OverflowError):  # a step of zero, too many bounds, more rounds than are counted
        return None


def _count_written(model: Model, name: cst.Name) -> int | None:
    """How many elements a variable has that a list or tuple of so many is written for, which does not grow; of a
    parameter, as many as it has by default, if any."""
    binding = model.binding(name)
    if binding is None or len(binding.writes) != 1 or binding.methods & _GROWING:
        return None
    write = binding.writes[0]
    if (default := _default(model, write)) is not None:
        return (_count(model, default) or None) if isinstance(default, (cst.Tuple, cst.List)) else None
    is_written_out = write.kind == "assign" and not write.unpacked and isinstance(write.value, (cst.Tuple, cst.List))
    return _count(model, write.value) if is_written_out and write.value is not None else None


def _default(model: Model, write: Write) -> cst.BaseExpression | None:
    parameter = model.parent(write.target) if write.kind == "parameter" else None
    return parameter.default if isinstance(parameter, cst.Param) else None


def _number(model: Model, node: cst.BaseExpression) -> int | None:
    if isinstance(node, cst.Integer):
        return int(node.value, 0)
    constant = model.value(node).constant
    if isinstance(constant, int) and not isinstance(constant, bool):
        return constant
    binding = model.binding(node)
    if binding is None or len(binding.writes) != 1:
        return None
    default = _default(model, binding.writes[0])
    return int(default.value, 0) if isinstance(default, cst.Integer) else None


def is_over_display(model: Model, loop: Loop) -> bool:
    """`for kernel in (dense, sparse): check(kernel)`, or over a list that is named: a round for each thing listed."""
    over = loop.iterable
    if isinstance(over, cst.Call) and over.args:  # `enumerate([...])`, `zip([...], [...])`
        over = over.args[0].value
    return over is not None and _is_display(model, over)


def _is_display(model: Model, node: cst.BaseExpression) -> bool:
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):  # `KINDS + ["total"]`
            return _is_display(model, left) or _is_display(model, right)
    return isinstance(node, (cst.List, cst.Tuple, cst.Name)) and _count(model, node) is not None


def is_of_a_few(model: Model, loop: Loop, most: int) -> bool:
    """Whether it is over things that are listed, has so many rounds or less, or is over kinds of things that the
    program has, whenever an epoch ends: none of the batches of it."""
    if is_over_display(model, loop) or ((count := rounds(model, loop)) is not None and count <= most):
        return True
    return is_of_epoch(loop.function) and not _is_over_own(model, loop)


def _is_over_own(model: Model, loop: Loop) -> bool:
    """Whether a loop goes through something that its function has made or was given, the object with all it holds."""
    names = (node for node in walk(loop.iterable) if isinstance(node, cst.Name)) if loop.iterable is not None else ()
    bindings = (model.binding(name) for name in names)
    return any(binding is not None and binding.scope_function is loop.function for binding in bindings)


def saves_each_time(loop: Loop) -> bool:
    """Whether each iteration puts a model into a file, which takes longer than any step."""
    return any(call.callee == "torch.save" and call.loop is loop for call in loop.calls)
