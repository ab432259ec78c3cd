"""`torch.stack` and `torch.cat` of what a loop collected: its axis becomes a dimension of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import alignment, headers, layout
from torchlint.analyses.vectorize.indexing import MOVED
from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.shapes import ATOM, UNKNOWN_DTYPE, Lifted, RefusedError

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter


def collected(lifter: Lifter, operation: Operation) -> Lifted:
    """`torch.stack([f(x[i]) for i in ...])`, and `torch.stack(rows)` of a list that an inner loop appended to."""
    if (
        operation.operands
        and isinstance(operation.operands[0], (cst.Tuple, cst.List))
        and operation.name != "python sum"
    ):
        return _of_several(lifter, operation, operation.operands[0])
    if not operation.only("dim") or len(operation.operands) not in (1, 2):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    what = operation.operands[0]
    dim = operation.argument("dim", 1)
    place = 0 if dim is None else layout.integer(lifter, dim)
    element = of_comprehension(lifter, what) if isinstance(what, (cst.ListComp, cst.GeneratorExp)) else None
    if element is None and operation.name == "python sum" and not lifter.context:
        return summed(lifter, _rows_of(lifter, what), [0], to_number=True)
    if element is None and isinstance(what, cst.Name) and what.value in lifter.lists:
        depth, element = lifter.lists[what.value]
        if depth != len(lifter.context):
            raise RefusedError(f"`{what.value}` is read while it grows")
    if element is None:
        raise RefusedError(f"what `{operation.code}` collects is not in sight")
    return join(lifter, element, operation.name, place, element.count - len(lifter.context))


def _of_several(lifter: Lifter, operation: Operation, parts: cst.Tuple | cst.List) -> Lifted:
    """`torch.cat((x[i], y[i]), dim=1)` of tensors that all have a row for each iteration."""
    dim = operation.argument("dim", 1)
    if (
        not operation.only("dim")
        or len(operation.operands) > 2
        or any(isinstance(element, cst.StarredElement) for element in parts.elements)
    ):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    operands = [lifter.tensor(element.value) for element in parts.elements]
    place = 0 if dim is None else layout.integer(lifter, dim)
    axes = alignment.union(operands)
    if not operands or any(operand.axes != axes for operand in operands):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    stacks = operation.name == "stack"
    least = (place if place >= 0 else -place - 1) + (not stacks)
    for operand in operands:
        lifter.tensors.learn_least(operand.rank, least)
    first, count = operands[0], len(axes)
    alike = all(operand.dtype == first.dtype for operand in operands) and first.dtype.token is not None
    shown = ", ".join(operand.text for operand in operands) + "," * (len(operands) == 1)
    lifter.operations.add("pointwise")
    return first.but(
        text=f"{operation.function}(({shown}), dim={place + count if place >= 0 else place})",
        level=ATOM,
        rank=first.rank.plus(1) if stacks else first.rank,
        dtype=first.dtype if alike else UNKNOWN_DTYPE,
        shares=False,
        exact=all(operand.exact for operand in operands),
        shape=None,
        claim=None,
    )


def _rows_of(lifter: Lifter, node: cst.BaseExpression) -> Lifted:
    """The rows of a tensor, one by one as iteration gives them."""
    base = lifter.certain(lifter.once(node), node)
    lifter.tensors.learn_least(base.rank, 1)
    axis = headers.rows(lifter, base)
    text, level = lifter.code(node), base.level
    if "\n" in text and not (isinstance(node, cst.Call) and "\n" not in lifter.code(node.func)):
        level = -1  # the lines are held together by the parentheses that go
    return base.but(text=text, level=level, axes=(axis,), rank=base.rank.plus(-1), shape=None)


def of_comprehension(lifter: Lifter, node: cst.ListComp | cst.GeneratorExp) -> Lifted:
    """What each element of a comprehension is, for all of them."""
    return _clause(lifter, node.for_in, node.elt)


def _clause(lifter: Lifter, clause: cst.CompFor, element: cst.BaseExpression) -> Lifted:
    if clause.ifs or clause.asynchronous is not None:
        raise RefusedError("the comprehension leaves elements out")
    with headers.entered(lifter, clause.target, clause.iter):
        if clause.inner_for_in is not None:
            return _clause(lifter, clause.inner_for_in, element)
        lifted = lifter.certain(lifter.value(element), element)
        if lifted.axes != lifter.context:
            raise RefusedError("the same value is collected several times")
        return lifted


def join(lifter: Lifter, element: Lifted, name: str, dim: int, loops: int) -> Lifted:
    """The tensor that stack or cat makes of all elements, where the innermost `loops` axes run over the list."""
    first = element.count - loops
    joined = element.but(axes=element.axes[:first], rank=element.rank.plus(1), shape=None)
    steps = f".flatten({first}, {first + loops - 1})" if loops > 1 else ""
    if name == "python sum":
        return summed(lifter, element, list(range(first, element.count)), to_number=True)
    if name == "stack":
        kept = element.where_it_is(dim) if dim and element.count == loops == 1 else None
        if kept is not None:
            return joined.but(text=kept, level=ATOM)
        front = MOVED.fullmatch(element.text) if dim and element.count == loops == 1 and element.level == ATOM else None
        if front is not None:  # from there to the front, and from the front to its place: in one step
            move = "" if front["dim"] == str(dim) else f".movedim({front['dim']}, {dim})"
            return joined.but(text=f"{front['tensor']}{move}", level=ATOM)
        steps += f".movedim({first}, {dim if dim < 0 else first + dim})" if dim else ""
    else:
        steps += _concatenated(lifter, element, first, dim)
        joined = joined.but(rank=element.rank)
    return joined.but(text=element.atom + steps, level=ATOM) if steps else joined


def summed(lifter: Lifter, terms: Lifted, places: list[int], *, to_number: bool) -> Lifted:
    """The sum over some of the loops' axes. Added one by one to a number, integers keep their dtype."""
    arguments = str(places[0]) if len(places) == 1 else f"({', '.join(map(str, places))})"
    dtype = terms.dtype.sum()
    if to_number and not terms.dtype.lasts:
        spelled = lifter.spelled_dtype(terms)
        if spelled is None and lifter.in_statement:
            name = lifter.unused("terms")
            named = terms.but(text=name)
            terms, spelled = terms.but(text=f"({name} := {terms.text})", level=ATOM), lifter.spelled_dtype(named)
        if spelled is None:
            lifter.doubt("the dtype is not known, and a sum of integers has another than its terms")
        arguments, dtype = f"{arguments}, dtype={spelled}", UNKNOWN_DTYPE
    lifter.operations.add("reduction")
    lifter.adds = True
    axes = tuple(axis for place, axis in enumerate(terms.axes) if place not in places)
    text = f"{terms.atom}.sum({arguments})"
    return terms.but(text=text, level=ATOM, axes=axes, dtype=dtype, shares=False, exact=False, shape=None)


def _concatenated(lifter: Lifter, element: Lifted, first: int, dim: int) -> str:
    if dim < 0 and element.rank.known is None:
        lifter.doubt_rank(element)
        return ""
    dim = dim + (element.rank.known or 0) if dim < 0 else dim
    if element.rank.known is not None and not 0 <= dim < element.rank.known:
        raise RefusedError(f"`{element.text}` has no dimension {dim}")
    lifter.tensors.learn_least(element.rank, dim + 1)
    move = f".movedim({first}, {first + dim})" if dim else ""
    return f"{move}.flatten({first + dim}, {first + dim + 1})"


def of_its_own(element: Lifted) -> Lifted:
    """The same result in memory that it shares with no tensor of the program, as that of stack is."""
    return element.but(text=f"{element.atom}.clone()", level=ATOM, shares=False) if element.shares else element


RULES: dict[str, Callable[[Lifter, Operation], Lifted]] = {
    "stack": collected,
    "cat": collected,
    "concat": collected,
    "python sum": collected,
}
