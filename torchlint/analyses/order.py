"""Which of two nodes comes first in the text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import children

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def is_before(model: Model, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Whether `first` begins before `second` in the text; neither may be around the other."""
    above = {}
    below = first
    for node in model.ancestors(first):
        above[node] = below
        below = node
    below = second
    for node in model.ancestors(second):
        if node in above:
            order = children(node)
            return order.index(above[node]) < order.index(below)
        below = node
    return False


def in_order(model: Model, nodes: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """Nodes of which none is around another, as they follow in the text. Spans would say it, too, but cost more."""

    def compared(first: cst.CSTNode, second: cst.CSTNode) -> int:
        return -1 if is_before(model, first, second) else 1

    return sorted(nodes, key=cmp_to_key(compared))
