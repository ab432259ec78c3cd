"""Numbers that the text of a program gives: written out, computed with, or to all appearances numbers."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.xfer.sizes import SIZED_CLASSES
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model

_TAKING_APART = (cst.Attribute, cst.Subscript, cst.For, cst.CompFor, cst.StarredElement)
MADE_OF_NUMBERS = ("torch.tensor", "torch.as_tensor", "torch.asarray", "torch.scalar_tensor")
_LARGEST_HALF, _LARGEST_FLOAT = 65504, 3.4e38
_SYMBOL = re.compile(r"(?i)_*(sos|eos|bos|pad|unk|go|cls|sep|blank)(_?(token|idx|id|index|symbol|word))?")
MAY_BE_NUMBERS = (Kind.UNKNOWN, Kind.FUNCTION, Kind.NAMESPACE, Kind.CLASS)  # what is imported may be any of these


def numbers_given(call: Call, model: Model) -> cst.BaseExpression | None:
    """The first argument of a call that makes a tensor of it, where numbers are written out there."""
    first = call.arguments[0] if call.arguments else None
    if first is None or first.star or first.keyword is not None:
        return None
    takes_number = call.callee in MADE_OF_NUMBERS
    if not takes_number and call.callee not in SIZED_CLASSES:
        return None
    given = _is_list_of_numbers(first.value, model) or (takes_number and _is_number(first.value, model))
    return first.value if given else None


def may_hold_numbers(call: Call, model: Model) -> bool:
    """`torch.tensor([power / 2])` of what looks like numbers: a list that is written out makes a tensor of the host."""
    first = call.arguments[0] if call.arguments else None
    if call.callee not in MADE_OF_NUMBERS or first is None or first.star or not isinstance(first.value, cst.List):
        return False
    if numbers_given(call, model) is not None or not all(map(_is_dtype, call.arguments[1:])):
        return False
    entries = [element.value for element in first.value.elements]
    return bool(entries) and all(is_literal(entry) or looks_like_number(entry, model) for entry in entries)


def _is_dtype(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value == "dtype"


def _is_list_of_numbers(node: cst.BaseExpression, model: Model) -> bool:
    """`[0, 1]`, `[[step]]`, `[0] * n`, `[SOS_token for _ in range(n)]`, `range(n)`."""
    match node:
        case cst.List() | cst.Tuple():
            parts = [element.value for element in node.elements]
            return bool(parts) and all(_is_entry(part, model) or _is_list_of_numbers(part, model) for part in parts)
        case cst.ListComp(elt=part, for_in=cst.CompFor(iter=cst.Call() as rounds, inner_for_in=None)):
            same = _is_entry(part, model) or _is_list_of_numbers(part, model)
            return same and not _reads_variable(part, node.for_in) and _is_list_of_numbers(rounds, model)
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            times = model.value(right).is_(Kind.NUMBER, Kind.UNKNOWN)
            return times and isinstance(left, (cst.List, cst.Tuple)) and _is_list_of_numbers(left, model)
    return is_range(node, model)


def is_range(node: cst.CSTNode | None, model: Model) -> bool:
    """Whether an expression is a call of `range`, and not one that gives a single number: `float("-inf")`, `len(x)`."""
    return isinstance(node, cst.Call) and model.call(node).callee == "builtins.range"


def _is_entry(node: cst.BaseExpression, model: Model) -> bool:
    """A number, or the name of what stands for a word in a vocabulary."""
    if _is_number(node, model):
        return True
    name = node.attr if isinstance(node, cst.Attribute) else node
    is_symbol = isinstance(name, cst.Name) and _SYMBOL.fullmatch(name.value) is not None
    return is_symbol and model.value(node).is_(*MAY_BE_NUMBERS)


def _reads_variable(node: cst.CSTNode, comprehension: cst.CompFor) -> bool:
    while isinstance(node, cst.ListComp):
        node = node.elt
    names = {part.value for part in walk(comprehension.target) if isinstance(part, cst.Name)}
    return any(isinstance(part, cst.Name) and part.value in names for part in walk(node))


def equal_numbers(node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """The shape of what is written out, and the number that all of it is; None where they differ, and of several, which
    are written out to be read: `[0.5, 0.5, 0.5]`."""
    if not isinstance(node, (cst.List, cst.Tuple)):
        return ("()", node) if is_literal(node) else None
    if len(node.elements) > 1:
        return None
    rows = [equal_numbers(element.value) for element in node.elements]
    first = rows[0] if rows else None
    if first is None or any(row is None or row[0] != first[0] or text(row[1]) != text(first[1]) for row in rows):
        return None
    inner = first[0].strip("(),")
    return f"({len(rows)}, {inner})" if inner else f"({len(rows)},)", first[1]


def fits(number: cst.BaseExpression, is_typed: bool) -> bool:
    """Whether what `torch.full` takes is small enough for its type, of which `torch.tensor` makes an infinity else."""
    try:
        size = abs(ast.literal_eval(text(number).strip()))
    except (ValueError, TypeError, SyntaxError):
        return False
    return bool(size <= (_LARGEST_HALF if is_typed else _LARGEST_FLOAT))


def types_of(node: cst.BaseExpression, model: Model) -> frozenset[str | None]:
    """The types of the numbers that `numbers_given` finds: "int", "float", "bool", or None of what is not known."""
    match node:
        case cst.List() | cst.Tuple():
            return frozenset().union(*(types_of(element.value, model) for element in node.elements))
        case cst.BinaryOperation(left=cst.List() | cst.Tuple() as left):
            return types_of(left, model)
        case cst.UnaryOperation():
            return types_of(node.expression, model)
        case cst.Call(func=cst.Name(value="range")):
            return frozenset(["int"])
    return frozenset([model.value(node).dtype])


def _is_number(node: cst.BaseExpression, model: Model) -> bool:
    return model.value(node).kind is Kind.NUMBER or is_literal(node)


def looks_like_number(node: cst.CSTNode, model: Model) -> bool:
    """Whether an expression may be a number and nothing in the file treats it as anything else."""
    match node:
        case cst.BinaryOperation(left=left, right=right):
            return all(is_literal(part) or looks_like_number(part, model) for part in (left, right))
        case cst.Name() | cst.Attribute():
            value, binding = model.value(node), model.binding(node)
            if value.kind is Kind.NUMBER:
                return True
            return value.kind is Kind.UNKNOWN and binding is not None and not _is_taken_apart(binding, model)
        case cst.Subscript():
            return _is_number_of_row(node, model) or _is_place_in_table(node, model)
    return False


def _is_number_of_row(node: cst.Subscript, model: Model) -> bool:
    """`steps[i + 1]` of an array or list of numbers."""
    row = model.value(node.value)
    index = [part.slice for part in node.slice]
    return row.element is not None and row.element.kind is Kind.NUMBER and isinstance(index[0], cst.Index)


def _is_place_in_table(node: cst.Subscript, model: Model) -> bool:
    """`bounds[0][i]`: an element of an element of what nothing says to be a tensor, at places that are numbers."""
    inner = node.value
    tables = (inner, inner.value) if isinstance(inner, cst.Subscript) else ()
    places = [part for row in (node, inner) if isinstance(row, cst.Subscript) for part in row.slice]
    return bool(tables) and (
        all(model.value(table).kind is Kind.UNKNOWN for table in tables)
        and all(isinstance(part.slice, cst.Index) and _is_number(part.slice.value, model) for part in places)
    )


def _is_taken_apart(binding: Binding, model: Model) -> bool:
    """Whether a variable has parts, methods or elements, or is called: numbers are just computed with."""
    above = [model.parent(read) for read in binding.reads]
    return binding.called or any(isinstance(node, _TAKING_APART) or getattr(node, "star", "") for node in above)


def is_literal(node: cst.CSTNode) -> bool:
    """Whether a number, or a string, is written out."""
    return isinstance(node, (cst.BaseNumber, cst.BaseString)) or (
        isinstance(node, cst.UnaryOperation) and isinstance(node.expression, cst.BaseNumber)
    )
