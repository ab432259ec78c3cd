"""Which of two nodes of one function comes first in the text, and which of them never run together."""

from __future__ import annotations

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


def are_alternatives(model: Model, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Whether one stands in the body of an `if` and the other in its `else`."""
    branches: dict[cst.CSTNode, cst.CSTNode] = {}
    below = first
    for node in model.ancestors(first):
        if isinstance(node, cst.If):
            branches[node] = below
        below = node
    below = second
    for node in model.ancestors(second):
        if node in branches:
            return branches[node] is not below
        below = node
    return False


def excludes(model: Model, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether two nodes stand in different branches of a condition."""
    branches = {guard.node: guard.branch for guard in model.guards(one)}
    return any(branches.get(guard.node, guard.branch) != guard.branch for guard in model.guards(other))
