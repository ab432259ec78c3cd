"""What the indices of a subscript look like."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.rowwise.names import prefixes
from torchlint.semantics.tree import walk


def has_slices(node: cst.Subscript) -> bool:
    parts = [element.slice for prefix in prefixes(node) for element in prefix.slice]
    return any(isinstance(part, cst.Slice) for part in parts)


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
