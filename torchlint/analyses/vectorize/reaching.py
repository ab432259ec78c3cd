"""Which assignment a name holds at a place: the last one that surely ran, if no other can have run since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.numbering import Numbering

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

_BLOCKS = (cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module)
_LOOPS = (cst.For, cst.While)
_SCOPED = ("for", "with", "except")
_OWNERS = (cst.For, cst.With, cst.ExceptHandler, cst.BaseComp)


class Reaching:
    """The order of what happens in the functions of one file."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._numbering = model.once(Numbering)

    def order(self, node: cst.CSTNode) -> int:
        """Position in the text, to be compared. A statement comes before its parts."""
        return self._numbering.first[node]

    def end(self, node: cst.CSTNode) -> int:
        """Position of the last part of a node."""
        return self._numbering.last[node]

    def reaching(self, binding: Binding, place: cst.CSTNode) -> Write | None:
        """The one write whose value `binding` has when control comes to `place`; None if that is not certain."""
        function = self._model.function(place)
        writes = [write for write in binding.writes if not self._inside(write.target, place)]
        if any(write.kind == "delete" or write.function is not binding.scope_function for write in writes):
            return None
        if binding.scope_function is not function:
            return writes[0] if len(writes) == 1 else None
        before = [write for write in writes if self.runs_before(write, place)]
        if not before:
            return None
        last = max(before, key=lambda write: self.order(write.target))
        others = [write for write in writes if write is not last]
        return None if any(self._may_run_between(last, write, place) for write in others) else last

    def runs_before(self, write: Write, place: cst.CSTNode) -> bool:
        """Whether the write has run whenever control comes to `place`."""
        if write.kind == "parameter":
            return True
        if write.kind in _SCOPED:
            owner = next((node for node in self._model.ancestors(write.target) if isinstance(node, _OWNERS)), None)
            body = owner.body if isinstance(owner, (cst.For, cst.With, cst.ExceptHandler)) else owner
            return body is not None and self._inside(place, body)
        if write.kind in ("walrus", "match") or self._reads_for(write, place):
            return False
        return self.surely_before(write.statement, place)

    def surely_before(self, statement: cst.CSTNode, place: cst.CSTNode) -> bool:
        """Whether a statement of the same function has run whenever control comes to `place`."""
        block = self.block(statement)
        return self.order(statement) < self.order(place) and self._inside(place, block) and block is not statement

    def block(self, node: cst.CSTNode) -> cst.CSTNode:
        """The sequence of statements that a node belongs to."""
        for ancestor in self._model.ancestors(node):
            if isinstance(ancestor, _BLOCKS):
                return ancestor
        return node

    def _may_run_between(self, last: Write, other: Write, place: cst.CSTNode) -> bool:
        start, at, end = self.order(last.target), self.order(other.target), self.order(place)
        if start < at < end and not self._reads_for(other, place):
            return True
        loops = [node for node in self._model.ancestors(place) if isinstance(node, _LOOPS)]
        return any(self._inside(other.target, loop) and not self._inside(last.target, loop) for loop in loops)

    def _reads_for(self, write: Write, place: cst.CSTNode) -> bool:
        """Whether a place is part of the assignment that writes, as in `rows = torch.stack(rows)`: it comes first."""
        statement = self._model.small_statement(write.target)
        return statement is not None and write.kind in ("assign", "augmented") and self._inside(place, statement)

    def _inside(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        return self._numbering.first[outer] <= self._numbering.first[node] <= self._numbering.last[outer]
