"""In which order the calls of an expression run."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import children

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model


class InnerFirst:
    """The calls in the expressions of one file, in the order in which they run."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[cst.CSTNode, tuple[Call, ...]] = {}

    def calls(self, node: cst.CSTNode) -> tuple[Call, ...]:
        """Those below a node, and the node itself, if it is one; none of the bodies of lambdas."""
        if node not in self._known:
            outer_first: list[Call] = []
            stack = [node]
            while stack:
                part = stack.pop()
                if type(part) is cst.Call:
                    outer_first.append(self._model.call(part))
                if type(part) is not cst.Lambda:
                    stack += children(part)
            self._known[node] = tuple(reversed(outer_first))
        return self._known[node]

    def is_optional(self, part: cst.CSTNode, whole: cst.CSTNode) -> bool:
        """Whether a part of an expression need not run: `trains and net.train()`. What a comprehension goes over has
        something in it, as that of a loop has."""
        inside = takewhile(lambda above: above is not self._model.parent(whole), self._model.ancestors(part))
        return any(isinstance(above, (cst.IfExp, cst.BooleanOperation)) or _chooses(above) for above in inside)


def _chooses(node: cst.CSTNode) -> bool:
    """`[... for net in nets if net.training]`"""
    each = node.for_in if isinstance(node, cst.BaseComp) else None
    while each is not None:
        if each.ifs:
            return True
        each = each.inner_for_in
    return False
