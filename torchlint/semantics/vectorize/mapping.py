"""`torch.vmap`, the last resort: an expression that is right for every iteration, where a batched form needs a rank or
a dtype that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint import spelling
from torchlint.semantics.tree import children, walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vectorize import alignment
from torchlint.semantics.vectorize.shapes import ATOM, Axis, Lifted

if TYPE_CHECKING:
    from torchlint.semantics.vectorize.lifting import Lifter

_OPAQUE = (cst.BaseComp, cst.Lambda, cst.NamedExpr, cst.BaseString)
# A batch of no rows has no shape that `-1` could stand for; `data` leaves the graph that vmap makes; losses put the
# dimensions of operands that differ in rank in the wrong places.
_UNMAPPED = frozenset(("view", "reshape", "data", "mse_loss", "l1_loss"))
# Takes dimensionless tensors for whole ones when it looks for the dtype of its result.
_PROMOTES_OTHERWISE = "where"


class _UnmappedError(Exception):
    """An expression has no form under vmap."""


@dataclass(slots=True)
class _Parameters:
    """The rows that an expression reads: what each is called in the function of one row, and all rows of it."""

    source: str
    rows: dict[str, Lifted] = field(default_factory=dict)

    def of_name(self, name: str, row: Lifted) -> str:
        """The parameter for the row that a name holds, which may keep its name."""
        known = self._known(row)
        if known is None:
            self.rows[name] = row
        return known or name

    def of_part(self, name: str, row: Lifted) -> str:
        """The parameter for a row without a name."""
        known = self._known(row)
        if known is not None:
            return known
        while name in self.rows or re.search(rf"\b{name}\b", self.source):
            name += "_"
        self.rows[name] = row
        return name

    def _known(self, row: Lifted) -> str | None:
        same = ((name, other) for name, other in self.rows.items() if other.axes == row.axes)
        return next((name for name, other in same if other.text == row.text), None)


def mapped(lifter: Lifter, node: cst.BaseExpression, lifted: Lifted, *, keeps_dtype: bool) -> Lifted | None:
    """The expression under `torch.vmap`; None where it has no such form. `lifted` is what is known of its result,
    `keeps_dtype` whether the dtypes of its operands decide nothing."""
    vmap = spelling.spelled(lifter.model, "torch.vmap", lifter.place)
    if vmap is None or any(_is_unmapped(lifter, part, keeps_dtype) for part in walk(node)):
        return None
    parameters = _Parameters(lifter.model.source.text)
    start, end = lifter.model.span(node)
    body = lifter.model.source.text[start:end]
    try:
        places = [(*lifter.model.span(row), name) for row, name in _rows(lifter, node, parameters)]
    except _UnmappedError:
        return None
    for first, last, name in sorted(places, reverse=True):
        body = body[: first - start] + name + body[last - start :]
    rows = list(parameters.rows.values())
    if not rows or "\n" in body or not all(row.tensor and not row.pair for row in rows):
        return None
    axes = alignment.union(rows)
    function = f"lambda {', '.join(parameters.rows)}: {body}"
    for axis in reversed(axes):
        function = f"{vmap}({function}{_dims(rows, axis)})"
    return lifted.but(
        text=f"{function}({', '.join(row.text for row in rows)})",
        level=ATOM,
        axes=axes,
        rank=lifted.rank if lifted.rank.base is None else lifter.some_rank(),
        shares=False,
        exact=False,
        shape=None,
    )


def _is_unmapped(lifter: Lifter, node: cst.CSTNode, keeps_dtype: bool) -> bool:
    if isinstance(node, _OPAQUE):
        return not isinstance(node, cst.SimpleString)
    if isinstance(node, cst.Call):
        return lifter.model.value(node.func).kind is Kind.MODULE
    name = node.value if isinstance(node, cst.Name) else ""
    return name in _UNMAPPED or (name == _PROMOTES_OTHERWISE and not keeps_dtype)


def _rows(lifter: Lifter, node: cst.BaseExpression, parameters: _Parameters) -> Iterator[tuple[cst.CSTNode, str]]:
    """The parts of an expression that are rows, and the parameters that take their places."""
    if not lifter.varies(node):
        _check_invariant(lifter, node)
    elif isinstance(node, cst.Name):
        row = lifter.lift(node)
        if row.axes:
            yield node, parameters.of_name(node.value, row)
    elif isinstance(node, cst.Subscript) and any(lifter.varies(element) for element in node.slice):
        yield node, parameters.of_part(_name_of(node), lifter.lift(node))
    elif isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and lifter.varies(node.func):
            yield from _rows(lifter, node.func.value, parameters)
        for argument in node.args:
            if argument.keyword is None or lifter.varies(argument.value):
                yield from _rows(lifter, argument.value, parameters)
    elif isinstance(node, (cst.Attribute, cst.Subscript)):
        yield from _rows(lifter, node.value, parameters)
    else:
        for child in _operands(node):
            yield from _rows(lifter, child, parameters)


def _operands(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    for child in children(node):
        if isinstance(child, cst.ComparisonTarget):
            yield child.comparator
        elif isinstance(child, (cst.Element, cst.Index)):
            yield child.value
        elif isinstance(child, cst.BaseExpression):
            yield child


def _check_invariant(lifter: Lifter, node: cst.BaseExpression) -> None:
    """Under vmap, no row meets an array of numpy."""
    if isinstance(node, (cst.BaseNumber, cst.SimpleString)) or lifter.code(node) in ("None", "True", "False"):
        return
    if isinstance(node, (cst.Tuple, cst.List)):
        for element in node.elements:
            _check_invariant(lifter, element.value)
        return
    lifted = lifter.invariant(node)
    if not (lifted.tensor or lifted.number):
        raise _UnmappedError


def _name_of(node: cst.Subscript) -> str:
    """`x_i` for `x[i, 0]`."""
    names = [part.value for part in walk(node) if isinstance(part, cst.Name) and part.value.isidentifier()]
    return "_".join(dict.fromkeys(name for name in names if name not in ("None", "torch", "self")))


def _dims(rows: Sequence[Lifted], axis: Axis) -> str:
    if all(axis in row.axes for row in rows):
        return ""
    return f", in_dims=({', '.join('0' if axis in row.axes else 'None' for row in rows)})"
