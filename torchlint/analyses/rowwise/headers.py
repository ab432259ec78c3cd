"""What a loop runs over: the numbers of a range, the rows of a tensor, or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.extent import FEW
from torchlint.analyses.rowwise.listed import is_made_of_rows
from torchlint.analyses.rowwise.names import spelled
from torchlint.analyses.rowwise.state import Depends, Fault, Seen, together
from torchlint.semantics.tree import integer, is_name, walk
from torchlint.semantics.values import Kind, Place
from torchlint.semantics.vocabulary import ITERATION_WRAPPERS

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.expressions import Expressions

_NUMBERS = re.compile(
    r"builtins\.range|random\.sample|random\.choices|numpy\.(arange|random\.\w+)|tqdm(\.\w+)*\.trange|six\.moves\.range"
)
_GIVING_BATCHES = re.compile(r"(?i)load|batch")
_FUNCTIONS = ("torch.unbind", "torch.split")
_METHODS = ("torch.Tensor.unbind", "torch.Tensor.split")

Header = cst.For | cst.CompFor | cst.Call


def enter(reader: Expressions, loop: Header, target: cst.BaseExpression, iterable: cst.BaseExpression) -> None:
    """Notes what the targets of a loop depend on."""
    iterable = unwrapped(reader, iterable)
    call = iterable if isinstance(iterable, cst.Call) else None
    name = (reader.model.qualified(call.func) or "") if call is not None else ""
    arguments = [argument.value for argument in call.args if argument.keyword is None] if call is not None else []
    if name == "builtins.enumerate" and arguments and isinstance(target, cst.Tuple) and len(target.elements) == 2:
        _bind(reader, target.elements[0].value, _index(loop))
        enter(reader, loop, target.elements[1].value, arguments[0])
    elif name == "builtins.zip" and isinstance(target, cst.Tuple) and len(target.elements) == len(arguments):
        for element, source in zip(target.elements, arguments):
            if _holds_numbers(reader, source):  # one for each channel, and of those there are few
                _bind(reader, element.value, Seen(Depends.FOREIGN, axes=frozenset((loop,))))
            else:
                enter(reader, loop, element.value, source)
    elif name == "itertools.product" and isinstance(target, cst.Tuple) and len(target.elements) == len(arguments):
        for element, source in zip(target.elements, arguments):
            enter(reader, loop, element.value, source)
    elif _NUMBERS.fullmatch(name):
        _enter_range(reader, loop, target, arguments, name)
    else:
        _bind(reader, target, _element(reader, loop, iterable))


def unwrapped(reader: Expressions, node: cst.BaseExpression) -> cst.BaseExpression:
    """Without progress bars, `list` and `reversed`."""
    while isinstance(node, cst.Call) and node.args and node.args[0].keyword is None and not node.args[0].star:
        name = reader.model.qualified(node.func) or ""
        if ITERATION_WRAPPERS.fullmatch(name) is None or name.endswith(("cycle", "trange", "islice")):
            break
        node = node.args[0].value
    return node


def _index(loop: Header) -> Seen:
    return Seen(Depends.INDEX, axes=frozenset((loop,)))


def _enter_range(
    reader: Expressions, loop: Header, target: cst.BaseExpression, bounds: Sequence[cst.BaseExpression], name: str
) -> None:
    seen = together(*(reader.of(bound) for bound in bounds))
    reader.trace.drawn |= "random" in name
    is_stepping = name.endswith("range") and len(bounds) == 3 and integer(bounds[2]) not in (1, -1)
    if is_stepping and not (reader.is_inner(loop) and _steps_over_elements(loop, target, bounds[2])):
        reader.trace.fault(Fault.CHUNKS)
    if seen.depends >= Depends.ROW:
        reader.trace.fault(Fault.RAGGED, "an inner loop runs a different number of times for each row")
    _bind(reader, target, together(seen, _index(loop)))


def _steps_over_elements(loop: Header, target: cst.BaseExpression, step: cst.BaseExpression) -> bool:
    """`for i in range(0, n, 2): out[b, i] = ...`, which takes no pieces of a row."""
    if integer(step) is None or not isinstance(target, cst.Name) or not isinstance(loop, cst.For):
        return False
    slices = (node for node in walk(loop.body) if isinstance(node, cst.Slice))
    return not any(is_name(part, target.value) for piece in slices for part in walk(piece))


def _element(reader: Expressions, loop: Header, iterable: cst.BaseExpression) -> Seen:
    axes = frozenset((loop,))
    if isinstance(iterable, cst.Name):
        source = reader.assigned_call(iterable)
        name = (reader.model.qualified(source.func) or "") if source is not None else ""
        if _NUMBERS.fullmatch(name):
            reader.trace.drawn |= "random" in name
            return _index(loop)
    value = reader.model.value(iterable)
    if _holds_numbers(reader, iterable):
        return together(reader.of(iterable), _index(loop))
    rows = _rows(reader, iterable)
    if rows is None:
        was_moved = value.kind is Kind.BATCH and value.place is Place.ACCELERATOR  # as no list can be
        return Seen(Depends.FOREIGN, axes=axes, maybe=was_moved or value.kind in (Kind.UNKNOWN, Kind.ARRAY))
    seen = reader.of(rows)
    if not seen.varies:
        reader.trace.subjects.setdefault(reader.name_of(rows), rows)
    return together(seen, Seen(Depends.ROW, axes=axes))


def _holds_numbers(reader: Expressions, node: cst.BaseExpression) -> bool:
    value = reader.model.value(node)
    return value.kind is Kind.LIST and value.element is not None and value.element.kind is Kind.NUMBER


def lists_numbers(reader: Expressions, node: cst.BaseExpression) -> bool:
    """Whether a list holds numbers, and more than the few that there are for the channels of an image: they are written
    out, or were appended one by one."""
    items = reader.model.value(node).items
    if items is not None:
        return len(items) >= FEW and all(item.kind is Kind.NUMBER for item in items)
    binding = reader.model.binding(node)
    return binding is not None and "append" in binding.methods and _holds_numbers(reader, node)


def _rows(reader: Expressions, iterable: cst.BaseExpression) -> cst.BaseExpression | None:
    """The tensor whose rows an iterable yields."""
    if isinstance(iterable, cst.Call) and (cut := _cut_tensor(reader, iterable)) is not None:
        return cut
    made = reader.assigned_call(iterable) if isinstance(iterable, cst.Name) else None
    if made is not None and _cut_tensor(reader, made) is not None:
        return iterable
    if isinstance(iterable, cst.Name) and is_made_of_rows(reader.model, reader.certainty, iterable):
        return iterable
    if reader.is_tensor(iterable) or (reader.of(iterable).is_row and _may_be_row(reader, iterable)):
        return iterable
    return None


def _may_be_row(reader: Expressions, node: cst.BaseExpression) -> bool:
    """Whether what depends on a row is a tensor: as the model believes, or as what a loop has come to is one."""
    binding = reader.model.binding(node)
    is_come_to = binding is not None and all(write.kind == "for" for write in binding.writes)
    return reader.believed_tensor(node) or (is_come_to and reader.model.value(node).kind is Kind.UNKNOWN)


def _cut_tensor(reader: Expressions, node: cst.Call) -> cst.BaseExpression | None:
    """`x` of `torch.unbind(x)` and `x.split(1, 1)`, but not of pieces that are longer."""
    call = reader.model.call(node)
    is_function = call.callee in _FUNCTIONS
    if not is_function and call.callee not in (None, *_METHODS):
        return None
    name = call.callee.rpartition(".")[2] if call.callee is not None else call.method
    if name != "unbind" and not (name == "split" and _is_one(node.args[is_function:])):
        return None  # no text is split at 1
    return node.args[0].value if is_function and node.args else call.receiver


def _is_one(sizes: Sequence[cst.Arg]) -> bool:
    return bool(sizes) and integer(sizes[0].value) == 1


def holds_rows(reader: Expressions, node: cst.BaseExpression) -> bool:
    """Whether a name holds the rows of a tensor: `x.unbind(1)`, `x.split(1, 1)`, or what is computed of each."""
    if isinstance(node, cst.Name) and is_made_of_rows(reader.model, reader.certainty, node):
        return True
    source = reader.assigned_call(node) if isinstance(node, cst.Name) else None
    return source is not None and _cut_tensor(reader, source) is not None


def _bind(reader: Expressions, target: cst.BaseExpression, seen: Seen) -> None:
    if isinstance(target, cst.Name):
        reader.local[target.value] = seen
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            _bind(reader, element.value, replace(seen.at_least(Depends.FOREIGN), maybe=False))


def are_batches(seen: Seen) -> bool:
    """Whether the name of what is iterated over says that it gives batches."""
    loops = (axis for axis in seen.axes if isinstance(axis, (cst.For, cst.CompFor)))
    return any(_GIVING_BATCHES.search(spelled(loop.iter)) for loop in loops)
