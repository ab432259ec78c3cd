"""Which of two nodes comes first in the text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.numbering import Numbering

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def is_before(model: Model, first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Whether `first` ends before `second` begins in the text; of two of which one is around the other, none does."""
    numbering = model.once(Numbering)
    end = numbering.last.get(first)
    return end is not None and end < numbering.first.get(second, -1)


def in_order(model: Model, nodes: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """Nodes of which none is around another, as they follow in the text. Spans would say it, too, but cost more."""
    first = model.once(Numbering).first
    return sorted(nodes, key=lambda node: first.get(node, -1))
