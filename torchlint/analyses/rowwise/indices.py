"""What the indices of a subscript look like."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.tree import prefixes, walk


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
    """`x[i, :length].sum(0)`: over the elements that a length picks, or a mask."""
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Subscript() as rows), args=[cst.Arg(value=cst.Integer(value="0"))]):
            parts = [element.slice for subscript in reversed([*prefixes(rows)]) for element in subscript.slice]
            return isinstance(parts[-1], cst.Slice) and all(isinstance(part, cst.Index) for part in parts[:-1])
    return False
