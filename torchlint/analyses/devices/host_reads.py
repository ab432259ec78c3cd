"""Which reads of a variable see what a statement of a loop wrote: in the same iteration, in the next, or behind it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import are_alternatives
from torchlint.analyses.loops.steps import is_the_rest
from torchlint.analyses.order import is_before
from torchlint.semantics.dataflow import reaches

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Function, Guard, Loop, Write
    from torchlint.semantics.model import Model


class When(Enum):
    """When a read takes place that sees what was written."""

    NOW = auto()  # in the loop, in every iteration
    SELDOM = auto()  # in the loop, at log intervals
    LATER = auto()  # behind the loop
    CALLED = auto()  # in a function that is called behind the loop
    UNKNOWN = auto()  # in another function, whenever that runs


class Reads:
    """Of one loop, or of a function that is entered."""

    def __init__(self, model: Model, loop: Loop | None) -> None:
        self._model = model
        self._loop = loop

    def seeing(self, statement: cst.CSTNode, binding: Binding) -> Iterator[tuple[cst.CSTNode, When]]:
        """Every read that can see what `statement` wrote. Where both branches of a condition read it, none is rare."""
        found = list(self._seeing(statement, binding))
        rare = [read for read, when in found if when is When.SELDOM]
        for read, when in found:
            is_always = when is When.SELDOM and any(are_alternatives(self._model, read, other) for other in rare)
            yield read, When.NOW if is_always else when

    def _seeing(self, statement: cst.CSTNode, binding: Binding) -> Iterator[tuple[cst.CSTNode, When]]:
        function = self._model.function(statement)
        for read in binding.reads:
            if self._model.function(read) is not function:
                if binding.cls is None:
                    yield read, When.CALLED if self._is_called_later(read, function) else When.UNKNOWN
            elif not self.is_in_loop(read):
                if self._may_get(binding, statement, read) and not self._is_rewritten(binding, statement, read):
                    yield read, When.LATER
            elif self._sees(read, statement, binding):
                yield read, When.SELDOM if self.is_rare(read) else When.NOW

    def _is_called_later(self, read: cst.CSTNode, function: Function) -> bool:
        """Whether another function reads a variable of this one, which calls it behind the loop only."""
        reader = self._model.function(read)
        calls = reader.callers
        is_known = bool(calls) and not (reader.passed_around or reader.foreign_callers)
        return is_known and all(call.function is function and not self.is_in_loop(call.node) for call in calls)

    def is_rare(self, read: cst.CSTNode) -> bool:
        """Whether a statement runs at log intervals only; `x if verbose else (x, y)` is read either way."""
        gates = (
            guard
            for guard in self._model.guards(read, self._loop or self._model.loop(read))
            if guard.kind in ("log", "handler") and not is_the_rest(guard) and not _compares_lengths(guard)
        )
        return any(not isinstance(guard.node, cst.IfExp) for guard in gates)

    def is_in_loop(self, node: cst.CSTNode) -> bool:
        return self._loop is None or self._loop in self._model.loops_around(node)

    def _may_get(self, binding: Binding, statement: cst.CSTNode, read: cst.CSTNode) -> bool:
        """Whether nothing else is always written between a statement and a read out of the loop, before it perhaps."""
        written = [write.target for write in binding.writes if statement in self._model.ancestors(write.target)]
        return not written or any(reaches(self._model, binding, target, read) for target in written)

    def _is_rewritten(self, binding: Binding, statement: cst.CSTNode, read: cst.CSTNode) -> bool:
        """Whether a read behind the loop gets what another statement has written in between."""
        blocks = [node for node in self._model.ancestors(read) if isinstance(node, cst.IndentedBlock)]
        return any(
            not self.is_in_loop(write.statement)
            and write.kind != "augmented"
            and self._model.parent(write.statement) in blocks
            and is_before(self._model, statement, write.target)
            and self._precedes(write, read)
            for write in binding.writes
        )

    def _sees(self, read: cst.CSTNode, statement: cst.CSTNode, binding: Binding) -> bool:
        """In a loop over it and behind the statement it does; before it, in the next iteration, unless something else
        is written first."""
        if isinstance(statement, cst.For) and statement in self._model.ancestors(read):
            return True
        if is_before(self._model, statement, read) and not are_alternatives(self._model, statement, read):
            return True
        if self._loop is not None and any(write.statement is self._loop.node for write in binding.writes):
            return False
        others = [write for write in binding.writes if write.statement is not self._model.statement(statement)]
        return not any(self.is_in_loop(write.statement) and self._precedes(write, read) for write in others)

    def _precedes(self, write: Write, read: cst.CSTNode) -> bool:
        """Whether the write is over when the read is made; in `x = x / n` the read comes first."""
        own = self._model.small_statement(write.target)
        if own is not None and own is self._model.small_statement(read):
            return False
        return is_before(self._model, write.target, read)


def _compares_lengths(guard: Guard) -> bool:
    """`if len(text) > len(shown): shown = text`, of what grows all the time."""
    match guard.test:
        case cst.Comparison(
            left=cst.Call(func=cst.Name(value="len")),
            comparisons=[cst.ComparisonTarget(comparator=cst.Call(func=cst.Name(value="len")))],
        ):
            return True
    return False
