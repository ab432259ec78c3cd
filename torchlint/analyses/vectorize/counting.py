"""The index of a loop as a number: `torch.arange` holds it for all iterations.

What is made of indices and numbers alone was reckoned by Python, in 64 bits, and is by torch here. Beside a tensor, or
where elements of one are filled, it takes the dtype that a number has there, and goes to the device of the tensor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import alignment
from torchlint.analyses.vectorize.shapes import (
    ATOM,
    BIT_OR,
    BOOL,
    COMPARISON,
    INT64,
    POWER,
    SCALAR,
    UNARY,
    Axis,
    DType,
    Lifted,
    Rank,
    RefusedError,
)
from torchlint.analyses.vectorize.stored import is_stored
from torchlint.edits import spelling
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

_DEVICE = "\0"  # where the device is to be named
_DOUBLE = DType("torch.float64", "float")
_WIDE = ("default", "torch.float32", "torch.float64", "torch.bfloat16", "int64", "bool")  # hold any index
_MOVING = re.compile(r"\.(to|cuda|cpu|type_as)\(")
_WHOLE = ("+", "-", "*", "//", "%")
_LISTED = re.compile(rf"[\w.]*\btensor\(([^()]*), dtype=torch\.int64{_DEVICE}\)")
_FUNCTIONS = {
    "builtins.abs": "abs", "math.fabs": "abs", "builtins.float": "", "math.sin": "sin", "math.cos": "cos",
    "numpy.sin": "sin", "numpy.cos": "cos",
}  # fmt: skip
"""By the method that does it for all iterations. They have a value for any number."""


def of_index(lifter: Lifter, axis: Axis) -> Lifted:
    """The index of a loop in all iterations."""
    arange = spelling.spelled(lifter.model, "torch.arange", lifter.place)
    if arange is None:
        raise refused(axis.index or "")
    stop = length(lifter, axis)
    first = f"[{axis.start}:]" if axis.start else ""
    return Lifted(
        f"{arange}({stop}{_DEVICE}){first}", ATOM, (axis,), SCALAR, INT64, tensor=False, number=False, counts=True
    )


def length(lifter: Lifter, axis: Axis) -> str:
    """How far a loop counts, in code."""
    if lifter.guarded and not axis.stop.natural:
        axis.guarded = True
        return f"max({axis.stop.text}, 0)"
    axis.reckoned = True
    return axis.stop.text


def lists_places(lifter: Lifter, node: cst.BaseExpression) -> bool:
    """Whether an expression is a list of integers, by all that is known of it."""
    value = lifter.model.value(node)
    element = value.element if value.kind is Kind.LIST and not value.optional and is_stored(node) else None
    return element is not None and element.kind is Kind.NUMBER and element.dtype == "int" and not element.optional


def of_list(lifter: Lifter, node: cst.BaseExpression, base: Lifted) -> Lifted:
    """A list of integers that a loop runs over."""
    if spelling.spelled(lifter.model, "torch.tensor", lifter.place) is None:
        raise RefusedError(f"`{base.text}` is not known to be a tensor")
    facts = lifter.tensors.of(node, lifter.place)
    return base.but(
        rank=Rank(1), dtype=INT64, tensor=False, number=False, claim=None, counts=True, exact=False, shape=facts
    )


def of_elements(lifter: Lifter, text: str) -> str:
    """The elements of a list of integers as a tensor."""
    return f"{spelling.spelled(lifter.model, 'torch.tensor', lifter.place)}({text}, dtype=torch.int64{_DEVICE})"


def refused(index: str) -> RefusedError:
    return RefusedError(f"the value of the index `{index}` is used")


def reckoned(lifter: Lifter, sign: str, level: int, operands: Sequence[Lifted]) -> Lifted | None:
    """An operator between indices and numbers; None where something else is among the operands."""
    if not all(operand.counts or operand.number for operand in operands) or sign == "@":
        return None
    counts = any(operand.counts for operand in operands)
    whole = all(operand.dtype.category == "int" for operand in operands)
    if counts and sign in ("**", "/", "//", "%") and not _is_defined(sign, operands[1], whole):
        raise refused(spelled(operands))
    whole = whole and sign in _WHOLE
    if not whole:
        operands = [_double(operand) for operand in operands]
    together = alignment.broadcast(lifter, operands)
    first, second = together.texts(level + (sign == "**"), level + (sign != "**"))
    category = "int" if whole else "float" if sign == "/" else None
    dtype = DType(None, category) if not counts else INT64 if whole else _DOUBLE
    return Lifted(
        f"{first} {sign} {second}", level, together.axes, SCALAR, dtype, tensor=False, counts=counts, number=not counts,
        exact=sign != "**" and all(operand.exact for operand in operands),
    )  # fmt: skip


def _is_defined(sign: str, second: Lifted, whole: bool) -> bool:
    """Whether an operator gives for tensors what it does for numbers: where these raise, tensors go on."""
    if sign == "**":
        return not whole
    is_power = second.level == POWER and second.text[0] in "123456789"  # of a positive number, which is never zero
    return (not second.counts or is_power) and (whole or sign == "/")


def compared(lifter: Lifter, sign: str, operands: Sequence[Lifted]) -> Lifted | None:
    """A comparison between indices and numbers; None where something else is among the operands."""
    if not all(operand.counts or operand.number for operand in operands):
        return None
    together = alignment.broadcast(lifter, operands)
    first, second = together.texts(BIT_OR, BIT_OR)
    counts = any(operand.counts for operand in operands)
    return Lifted(
        f"{first} {sign} {second}", COMPARISON, together.axes, SCALAR, BOOL, tensor=False, counts=counts,
        number=not counts,
    )  # fmt: skip


def chosen(lifter: Lifter, test: Lifted, first: Lifted, second: Lifted, node: cst.IfExp) -> Lifted:
    """`a if i % 2 else b` of numbers. Whatever is not chosen has a value, too."""
    where = spelling.spelled(lifter.model, "torch.where", lifter.place)
    if not (test.counts and test.dtype == BOOL) or not all(each.counts for each in (first, second)) or where is None:
        raise RefusedError(f"`{lifter.code(node)}` has no batched form")
    values = [first, second] if first.dtype == second.dtype else [_double(first), _double(second)]
    together = alignment.broadcast(lifter, [test, *values])
    return Lifted(
        f"{where}({', '.join(operand.text for operand in together.operands)})", ATOM, together.axes, SCALAR,
        values[0].dtype, tensor=False, counts=True, exact=first.exact and second.exact,
    )  # fmt: skip


def negative(operand: Lifted) -> Lifted:
    return operand.but(text=f"-{operand.within(UNARY)}", level=UNARY)


def function(lifter: Lifter, node: cst.Call) -> Lifted | None:
    """`abs(i - 3)`, `math.fabs(i / n)`; None for what is no function of Python on a number that an index makes."""
    name = lifter.model.qualified(node.func)
    if name not in _FUNCTIONS or len(node.args) != 1 or node.args[0].keyword or node.args[0].star:
        return None
    operand = lifter.lift(node.args[0].value)
    if not operand.counts:
        return None
    method = _FUNCTIONS[name]
    if name != "builtins.abs":
        operand = _double(operand)
    if not method:
        return operand
    return operand.but(text=f"{operand.atom}.{method}()", level=ATOM, exact=operand.exact and method == "abs")


def _double(operand: Lifted) -> Lifted:
    if not operand.counts or operand.dtype == _DOUBLE:
        return operand
    return operand.but(text=f"{operand.atom}.double()", level=ATOM, dtype=_DOUBLE)


def spelled(operands: Sequence[Lifted]) -> str:
    """The index that one of the operands is made of."""
    return next((axis.index or "" for operand in operands if operand.counts for axis in operand.axes), "")


def beside(lifter: Lifter, operands: Sequence[Lifted], *, compares: bool) -> list[Lifted]:
    """Operands of which some are made of indices, and another is a tensor."""
    if not any(operand.counts for operand in operands):
        return list(operands)
    tensors = [operand for operand in operands if not (operand.counts or operand.number)]
    if len(operands) != 2 or len(tensors) != 1 or tensors[0].pair:
        raise refused(spelled(operands))
    [partner] = tensors
    if partner.claim is not None:
        lifter.claims.add(partner.claim)
    elif not partner.tensor:
        raise RefusedError(f"`{partner.text}` is not known to be a tensor")
    return [_beside(lifter, operand, partner, compares) if operand.counts else operand for operand in operands]


def _beside(lifter: Lifter, operand: Lifted, partner: Lifted, compares: bool) -> Lifted:
    name = _named(lifter, partner)
    if name is None:
        raise refused(spelled([operand]))
    whole, kind = operand.dtype == INT64, partner.dtype
    moved = operand.but(text=_on(operand.text, f"{name}.device"), tensor=True, counts=False, exact=compares)
    if whole and (compares or kind.inexact or kind == INT64 or kind.category == "bool"):
        return moved
    if kind.token is None or (partner.text != name and not partner.text.startswith(f"{name}[")):
        raise refused(spelled([operand]))
    like = operand.but(text=_on(operand.text, ""))
    if kind.inexact or (whole and kind.category == "int"):
        return moved.but(text=f"{like.atom}.to({name})", level=ATOM, dtype=kind)
    result_type = spelling.spelled(lifter.model, "torch.result_type", lifter.place)
    if not (whole and lifter.guarded) or result_type is None:
        lifter.doubt(f"the dtype of `{partner.text}` is not known, and a number takes it")
        return moved
    return moved.but(text=f"{moved.atom}.to({result_type}({name}, 0))", level=ATOM, dtype=kind)


def filled(lifter: Lifter, value: Lifted, name: str, sign: str, *, listed: bool) -> Lifted:
    """A value made of indices, as it is assigned to elements. `listed`: these are picked one by one."""
    sink = lifter.sinks[name]
    whole = value.dtype == INT64
    if sign != "=" and not (whole or sink.dtype.inexact):
        raise refused(spelled([value]))
    if sink.dtype.token not in _WIDE:
        lifter.cautions.add(f"a number too large for the dtype of `{name}` raises no error")
    exact = value.exact and sign == "=" and sink.dtype.token in _WIDE
    tensor = value.but(tensor=True, counts=False, exact=exact)
    if whole and not listed:
        return tensor.but(text=_on(value.text, f"{name}.device"))
    on_host = tensor.but(text=_on(value.text, ""))
    if sign == "=" and not listed:
        return on_host
    return on_host.but(text=f"{on_host.atom}.to({name})", level=ATOM, dtype=sink.dtype)


def places(value: Lifted) -> Lifted:
    """A value made of indices, as what rows are picked by: a tensor may have its places on the host."""
    if value.dtype != INT64:
        raise refused(spelled([value]))
    listed = _LISTED.fullmatch(value.text)
    return value.but(text=listed[1] if listed is not None else _on(value.text, ""), tensor=True, counts=False)


def _on(text: str, device: str) -> str:
    return text.replace(_DEVICE, f", device={device}" if device else "")


def _named(lifter: Lifter, tensor: Lifted) -> str | None:
    """A tensor that is where another one is: it has a name."""
    if _MOVING.search(tensor.text):
        return None
    if tensor.text.isidentifier():
        return tensor.text
    found = {
        name: match.start()
        for name in lifter.tensor_names
        if (match := re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", tensor.text)) is not None
    }
    return min(found, key=found.__getitem__, default=None)  # places of rows, which may be elsewhere, come behind
