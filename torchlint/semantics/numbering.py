"""The nodes of a file, numbered as a walk comes to them, so that what is inside or before what is a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class Numbering:
    """`first` and `last`: the numbers of a node and of the last node below it. In between are all that it holds."""

    def __init__(self, model: Model) -> None:
        order = list(walk(model.module))
        self.first: dict[cst.CSTNode, int] = {node: number for number, node in enumerate(order)}
        self.last: dict[cst.CSTNode, int] = dict(self.first)
        for node in reversed(order):
            parent = model.parent(node)
            if parent is not None and self.last[parent] < self.last[node]:
                self.last[parent] = self.last[node]
