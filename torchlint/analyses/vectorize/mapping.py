"""`torch.vmap`, the last resort: an expression that is right for every iteration, where a batched form needs a rank or
a dtype that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.vectorize import alignment, mappable
from torchlint.analyses.vectorize.indexing import MOVED
from torchlint.analyses.vectorize.mapped_ranks import Ranks
from torchlint.analyses.vectorize.operation import Operation, called_module
from torchlint.analyses.vectorize.shapes import ATOM, Axis, Lifted, Missing, RefusedError
from torchlint.analyses.vectorize.vocabulary import ROW_LOSSES
from torchlint.edits import spelling
from torchlint.semantics.tree import children, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter
    from torchlint.semantics.model import Model

_OPAQUE = (cst.BaseComp, cst.Lambda, cst.NamedExpr, cst.BaseString)
# A batch of no rows has no shape that `-1` could stand for; `data` leaves the graph that vmap makes; losses put the
# dimensions of operands that differ in rank in the wrong places.
_UNMAPPED = frozenset(("view", "reshape", "data", "mse_loss", "l1_loss"))


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


@dataclass(slots=True)
class _Text:
    """The source, with other text put in some places."""

    model: Model
    _put: list[tuple[int, int, int, str]] = field(default_factory=list)

    def put(self, span: tuple[int, int], text: str) -> None:
        self._put.append((*span, len(self._put), text))

    def name(self, node: cst.CSTNode, name: str) -> None:
        """Gives a name to the value of an expression, with all that is put into it."""
        start, end = self.model.span(node)
        self._put.append((start, start, -len(self._put), f"({name} := "))
        self.put((end, end), ")")

    def of(self, node: cst.CSTNode) -> str:
        start, end = self.model.span(node)
        text = self.model.source.text[start:end]
        for first, last, _, new in sorted(self._put, reverse=True):
            if start <= first and last <= end:
                text = text[: first - start] + new + text[last - start :]
        return text


def mapped(lifter: Lifter, node: cst.BaseExpression, lifted: Lifted, missing: set[Missing]) -> Lifted | None:
    """The expression under `torch.vmap`; None where it has no such form. `lifted` is what is known of its result,
    `missing` what is not known of its operands."""
    if any(_is_unmapped(lifter, part) for part in walk(node)):
        return None
    form = _form(lifter, node, cast=Missing.DTYPE in missing)
    if form is None or not all(row.tensor for row in form.rows):
        return None
    if len(form.axes) == 1 and _meet(node, form.rows):
        return None
    rank = lifted.rank if lifted.rank.base is None else lifter.some_rank()
    return lifted.but(text=form.text, level=ATOM, axes=form.axes, rank=rank, exact=False, shape=None)


def is_plain(lifter: Lifter, node: cst.BaseExpression) -> bool:
    """Whether rows of unknown ranks do no more than meet in operators."""
    parameters = _Parameters(lifter.model.source.text)
    try:
        list(_rows(lifter, node, parameters))
    except _UnmappedError:
        return False
    return _meet(node, list(parameters.rows.values()))


def _meet(node: cst.BaseExpression, rows: list[Lifted]) -> bool:
    """Rows that meet in an operator are alike as a rule, and nobody would write more for it than the operator."""
    computes = any(isinstance(part, (cst.Call, cst.MatrixMultiply)) for part in walk(node))
    return not computes and len(rows) > 1 and any(row.rank.base is not None for row in rows)


def last_resort(lifter: Lifter, node: cst.Call) -> Lifted:
    """A call under `torch.vmap`, where the table of batching rules has none for it. Refuses one that is more than a
    computation of one tensor from rows."""
    call = mappable.check(lifter, node)
    form = _form(lifter, node, cast=True)
    if form is None:
        raise RefusedError(f"`{lifter.code(node.func)}` has no batched form")
    lifter.operations.add("mapped")
    if lifter.mask is not None or call.never_empty or any(row.rank.least == 0 for row in form.rows):
        lifter.fails_for_none(f"`{lifter.code(node.func)}` may take no empty batch")
    rank = call.rank if call.rank is not None else lifter.some_rank()
    shares = call.views and any(row.shares for row in form.rows)
    return Lifted(form.text, ATOM, form.axes, rank, call.dtype, shares=shares, exact=False)


def is_computation(lifter: Lifter, node: cst.Call) -> bool:
    """Whether a call that is the same in every iteration does no more than make a tensor of tensors and numbers."""
    mappable.Reader(lifter).computed(node)
    return True


def unvaried(lifter: Lifter, node: cst.Call) -> Lifted:
    """A call that is the same in every iteration, where the table of batching rules has none for it."""
    mappable.Reader(lifter).computed(node)
    rank = Ranks(lifter).of(node)
    return Lifted(lifter.code(node), ATOM, (), rank if rank is not None else lifter.some_rank())


class _Form(NamedTuple):
    """A call of a mapped function: its text, what runs over the rows, and these."""

    text: str
    axes: tuple[Axis, ...]
    rows: list[Lifted]


def _form(lifter: Lifter, node: cst.BaseExpression, *, cast: bool) -> _Form | None:
    vmap = spelling.spelled(lifter.model, "torch.vmap", lifter.place)
    if vmap is None:
        return None
    parameters = _Parameters(lifter.model.source.text)
    body = _Text(lifter.model)
    try:
        for row, name in _rows(lifter, node, parameters):
            body.put(lifter.model.span(row), name)
        if cast:
            _cast_choices(lifter, node, body)
    except _UnmappedError:
        return None
    spelled = _bare(node, body.of(node))
    rows = list(parameters.rows.values())
    if not rows or "\n" in spelled or any(row.pair for row in rows):
        return None
    axes = alignment.union(rows)
    function = _function_of(node, list(parameters.rows), body) or f"lambda {', '.join(parameters.rows)}: {spelled}"
    mapped = [_Mapped(row) for row in rows]
    for axis in reversed(axes):
        function = f"{vmap}({function}{_dims(mapped, axis)})"
    return _Form(f"{function}({', '.join(row.text for row in mapped)})", axes, rows)


def _bare(node: cst.BaseExpression, text: str) -> str:
    """The text of an expression without the parentheses that only keep it together."""
    for _ in node.lpar:
        text = text[1:-1].strip()
    return text


def _function_of(node: cst.BaseExpression, parameters: list[str], body: _Text) -> str | None:
    """The function that is called with the parameters and nothing else, which needs no lambda around it."""
    if not isinstance(node, cst.Call) or [body.of(argument) for argument in node.args] != parameters:
        return None
    function = body.of(node.func)
    return function if re.fullmatch(r"[\w.]+", function) and function.split(".")[0] not in parameters else None


def _is_unmapped(lifter: Lifter, node: cst.CSTNode) -> bool:
    if isinstance(node, _OPAQUE):
        return not isinstance(node, cst.SimpleString)
    if isinstance(node, cst.Call) and lifter.model.value(node.func).kind is Kind.MODULE:
        module = called_module(lifter, node.func)
        return module is None or module[0] not in ROW_LOSSES
    return isinstance(node, cst.Name) and node.value in _UNMAPPED


def _cast_choices(lifter: Lifter, node: cst.BaseExpression, body: _Text) -> None:
    """Gives what `where` chooses the dtype that it has in one iteration, the choices further in first."""
    for call in reversed([part for part in walk(node) if isinstance(part, cst.Call) and _chooses(part)]):
        operation = Operation.read(lifter, call)
        if len(operation.operands) != 3 or operation.keywords:
            raise _UnmappedError
        choices = operation.operands[1:] if operation.function is not None else operation.operands[::2]
        first, second = (lifter.lift(choice) for choice in choices)
        if any(one.number or one.dtype.absorbs(other.dtype) for one, other in ((first, second), (second, first))):
            continue
        result_type = spelling.spelled(lifter.model, "torch.result_type", lifter.place)
        if result_type is None:
            raise _UnmappedError
        names = []
        for choice in choices:
            if any(isinstance(part, cst.Call) for part in walk(choice)):
                names.append(lifter.unused("choice"))
                body.name(choice, names[-1])
            else:
                names.append(body.of(choice))
        _, end = lifter.model.span(call)
        body.put((end, end), f".to({result_type}({', '.join(names)}))")


def _chooses(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "where"


def _rows(lifter: Lifter, node: cst.BaseExpression, parameters: _Parameters) -> Iterator[tuple[cst.CSTNode, str]]:
    """The parts of an expression that are rows, and the parameters that take their places."""
    if not lifter.varies(node):
        _check_invariant(lifter, node)
    elif isinstance(node, cst.Name):
        row = lifter.lift(node)
        if row.counts:
            raise _UnmappedError
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


class _Mapped:
    """All rows of one operand, and the dimension that holds them: of one loop's, whichever it is."""

    def __init__(self, rows: Lifted) -> None:
        moved = MOVED.fullmatch(rows.text) if rows.count == 1 and rows.level == ATOM else None
        self._axes = rows.axes
        self._dim = moved["dim"] if moved is not None else "0"
        self.text = moved["tensor"] if moved is not None else rows.text

    def dim(self, axis: Axis) -> str:
        return self._dim if axis in self._axes else "None"


def _dims(rows: Sequence[_Mapped], axis: Axis) -> str:
    dims = list(dict.fromkeys(row.dim(axis) for row in rows))
    if len(dims) > 1:
        return f", in_dims=({', '.join(row.dim(axis) for row in rows)})"
    return f", in_dims={dims[0]}" if dims != ["0"] else ""
