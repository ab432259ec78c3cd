"""What the indices of a subscript look like."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics.tree import integer, prefixes, walk


def index_of(node: cst.Subscript) -> cst.BaseExpression | None:
    """The only index of a subscript."""
    part = node.slice[0].slice if len(node.slice) == 1 else None
    return part.value if isinstance(part, cst.Index) else None


def slices_of(node: cst.Subscript) -> list[cst.Slice]:
    """All slices in the subscripts of `x[a:b][:, c:d]`."""
    parts = [element.slice for prefix in prefixes(node) for element in prefix.slice]
    return [part for part in parts if isinstance(part, cst.Slice)]


def has_bounds(node: cst.Subscript) -> bool:
    """`x[i, 1:]`, but not `x[i, :]`, which takes all there is."""
    return any(part.lower is not None or part.upper is not None for part in slices_of(node))


def is_number(node: cst.BaseExpression, several: bool) -> bool:
    """`lengths[i] - 1`, in `x[i, length - 1]` also `length - 1`: no mask and no list of places."""
    match node:
        case cst.BinaryOperation(left=left, right=cst.Integer()):
            return isinstance(left, cst.Subscript) or (several and isinstance(left, cst.Name))
    return False


def has_key(node: cst.Subscript) -> bool:
    """`frames["color", i]`: an entry of a dict, and no row."""
    parts = [element.slice for element in node.slice]
    return any(isinstance(one, cst.SimpleString) for part in parts for one in walk(part))


def is_along_cut(node: cst.Call) -> bool:
    """`x[i, :length].sum(0)`, `torch.mean(x[i][:, :length], 1)`: over the elements that a length picks, or a mask."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="max" | "min"))):
            return False  # which also say where
        case (
            cst.Call(func=cst.Attribute(value=cst.Subscript() as rows), args=[dim])
            | cst.Call(args=[cst.Arg(value=cst.Subscript() as rows), dim])
        ):
            return _is_cut_along(rows, integer(dim.value))
    return False


def _is_cut_along(rows: cst.Subscript, dimension: int | None) -> bool:
    """Whether this is the only dimension of which a part is taken; numbers have picked the row before."""
    parts = [element.slice for subscript in reversed([*prefixes(rows)]) for element in subscript.slice]
    cuts = [part for part in parts if isinstance(part, cst.Slice)]
    picked = parts[: len(parts) - len(cuts)]
    taken = [place for place, cut in enumerate(cuts) if cut.lower is not None or cut.upper is not None]
    return taken == [dimension] and all(isinstance(part, cst.Index) for part in picked)


class LeftOut(NamedTuple):
    """A row, the other indices that it takes, and the place of the one element that is left out of it."""

    row: cst.BaseExpression
    others: list[cst.BaseExpression]
    place: cst.BaseExpression


def left_out(node: cst.Call) -> LeftOut | None:
    """`torch.cat((x[i, :k], x[i, k + 1 :]))`: one element less than the row has, wherever that is."""
    match node.args:
        case [
            cst.Arg(
                value=cst.Tuple(elements=[cst.Element(value=first), cst.Element(value=second)])
                | cst.List(elements=[cst.Element(value=first), cst.Element(value=second)])
            ),
            *_,
        ]:
            return _around(first, second)
    return None


def _around(first: cst.BaseExpression, second: cst.BaseExpression) -> LeftOut | None:
    """Of the pieces before and after the element."""
    if not isinstance(first, cst.Subscript) or not isinstance(second, cst.Subscript):
        return None
    *others, before = (part.slice for part in first.slice)
    *same, after = (part.slice for part in second.slice)
    if len(others) != len(same) or not first.value.deep_equals(second.value):
        return None
    indices = [other.value for other in others if isinstance(other, cst.Index)]
    is_same = len(indices) == len(same) and all(one.deep_equals(other) for one, other in zip(others, same))
    match before, after:
        case cst.Slice(lower=None, upper=place, step=None), cst.Slice(lower=rest, upper=None, step=None):
            found = place is not None and rest is not None and is_same and _is_next(place, rest)
            return LeftOut(first.value, indices, place) if found and place is not None else None
    return None


def _is_next(place: cst.BaseExpression, rest: cst.BaseExpression) -> bool:
    """`k` and `k + 1`"""
    match rest:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            return any(integer(one) == 1 and other.deep_equals(place) for one, other in ((left, right), (right, left)))
    return False
