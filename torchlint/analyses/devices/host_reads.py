"""Which reads of a variable see what a statement of a loop wrote: in the same iteration, in the next, or behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import are_alternatives
from torchlint.analyses.loops.steps import is_the_rest
from torchlint.analyses.order import is_before
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.guards import conjuncts
from torchlint.semantics.numbering import Numbering
from torchlint.semantics.tree import walk

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
        self._numbering = model.once(Numbering)
        self._known: dict[tuple[cst.CSTNode, Binding], list[tuple[cst.CSTNode, When]]] = {}
        self._writes: dict[Binding, _Writes] = {}

    @classmethod
    def of(cls, model: Model, loop: Loop | None) -> Reads:
        """The same for all that is followed through a loop."""
        known = model.once(_known_reads)
        if loop not in known:
            known[loop] = cls(model, loop)
        return known[loop]

    def seeing(self, statement: cst.CSTNode, binding: Binding) -> list[tuple[cst.CSTNode, When]]:
        """Every read that can see what `statement` wrote. Where both branches of a condition read it, none is rare."""
        if (statement, binding) not in self._known:
            found = list(self._seeing(statement, binding))
            rare = [read for read, when in found if when is When.SELDOM]
            self._known[statement, binding] = [
                (read, When.NOW if when is When.SELDOM and self._is_read_either_way(read, rare) else when)
                for read, when in found
            ]
        return self._known[statement, binding]

    def _is_read_either_way(self, read: cst.CSTNode, rare: Iterable[cst.CSTNode]) -> bool:
        return any(are_alternatives(self._model, read, other) for other in rare)

    def _seeing(self, statement: cst.CSTNode, binding: Binding) -> Iterator[tuple[cst.CSTNode, When]]:
        function = self._model.function(statement)
        if binding not in self._writes:
            self._writes[binding] = self._sorted(binding)
        writes = self._writes[binding]
        written = [write.target for write in binding.writes if self._is_around(statement, write.target)]
        for read in binding.reads:
            if self._model.function(read) is not function:
                if binding.cls is None:
                    yield read, When.CALLED if self._is_called_later(read, function) else When.UNKNOWN
            elif not self.is_in_loop(read):
                may_get = not written or any(reaches(self._model, binding, target, read) for target in written)
                if may_get and not self._is_rewritten(writes, statement, read):
                    yield read, When.LATER
            elif self._sees(read, statement, writes):
                yield read, When.SELDOM if self.is_rare(read, statement) else When.NOW

    def _is_called_later(self, read: cst.CSTNode, function: Function) -> bool:
        """Whether another function reads a variable of this one, which calls it behind the loop only."""
        reader = self._model.function(read)
        calls = reader.callers
        is_known = bool(calls) and not (reader.passed_around or reader.foreign_callers)
        return is_known and all(call.function is function and not self.is_in_loop(call.node) for call in calls)

    def is_rare(self, read: cst.CSTNode, beside: cst.CSTNode | None = None) -> bool:
        """Whether a statement runs at log intervals only, or at some of those at which another one runs; `x if verbose
        else (x, y)` is read either way."""
        loop = self._loop or self._model.loop(read)
        shared = {guard.node for guard in self._model.guards(beside, loop)} if beside is not None else set()
        gates = (
            guard
            for guard in self._model.guards(read, loop)
            if guard.kind in ("log", "handler") and not is_the_rest(guard) and not _compares_lengths(guard)
        )
        gates = (guard for guard in gates if not self._picks_inner_round(guard, loop))
        return any(not isinstance(guard.node, cst.IfExp) and guard.node not in shared for guard in gates)

    def _picks_inner_round(self, guard: Guard, loop: Loop | None) -> bool:
        """`if part == 0:` of `for part in range(parts):` within the loop, which has such a round in every iteration."""
        if guard.test is None:
            return False
        around = self._model.loops_around(guard.node)
        inner = set(takewhile(lambda each: each is not loop, around)) if loop in around else set()
        return bool(inner) and all(self._asks_for_target(part, inner) for part in conjuncts(guard.test))

    def _asks_for_target(self, test: cst.BaseExpression, loops: set[Loop]) -> bool:
        """Whether a test is about the rounds of these loops, and of no other: not `(step + part) % 100 == 0`."""
        asked = (self._model.binding(node) for node in walk(test) if isinstance(node, cst.Name))
        writes = (write for binding in asked if binding is not None for write in binding.writes)
        counted = {write.loop for write in writes if write.kind == "for"}
        return bool(counted) and counted <= loops

    def is_one_of_many(self, element: cst.BaseExpression) -> bool:
        """`scores[k]`, where a loop within the loop counts `k`: together they are the array again."""
        if not isinstance(element, cst.Subscript):
            return False
        inner = set(takewhile(lambda each: each is not self._loop, self._model.loops_around(element)))
        names = (node for part in element.slice for node in walk(part) if isinstance(node, cst.Name))
        indices = (binding for name in names if (binding := self._model.binding(name)) is not None)
        return any(write.kind == "for" and write.loop in inner for index in indices for write in index.writes)

    def is_in_loop(self, node: cst.CSTNode) -> bool:
        return self._loop is None or self._loop in self._model.loops_around(node)

    def _is_around(self, outer: cst.CSTNode, node: cst.CSTNode) -> bool:
        first = self._numbering.first
        return first[outer] < first[node] <= self._numbering.last[outer]

    def _sorted(self, binding: Binding) -> _Writes:
        found = _Writes()
        for write in sorted(binding.writes, key=lambda write: self._numbering.first[write.target]):
            if self.is_in_loop(write.statement):
                found.inside.append(write)
                found.is_loop |= self._loop is not None and write.statement is self._loop.node
            elif write.kind != "augmented":
                found.behind.setdefault(self._model.parent(write.statement), []).append(write)
        return found

    def _is_rewritten(self, writes: _Writes, statement: cst.CSTNode, read: cst.CSTNode) -> bool:
        """Whether a read behind the loop gets what another statement has written in between."""
        blocks = [node for node in self._model.ancestors(read) if isinstance(node, cst.IndentedBlock)]
        end = self._numbering.last[statement]
        return any(
            self._precedes(write, read)
            for block in blocks
            for write in self._up_to(read, writes.behind.get(block, ()))
            if end < self._numbering.first[write.target]
        )

    def _up_to(self, read: cst.CSTNode, writes: Iterable[Write]) -> Iterator[Write]:
        first = self._numbering.first
        return takewhile(lambda write: first[write.target] < first[read], writes)

    def _sees(self, read: cst.CSTNode, statement: cst.CSTNode, writes: _Writes) -> bool:
        """In a loop over it and behind the statement it does; before it, in the next iteration, unless something else
        is written first."""
        if isinstance(statement, cst.For) and self._is_around(statement, read):
            return True
        if is_before(self._model, statement, read) and not are_alternatives(self._model, statement, read):
            return True
        if writes.is_loop:
            return False
        own = self._model.statement(statement)
        return not any(
            write.statement is not own and self._precedes(write, read) for write in self._up_to(read, writes.inside)
        )

    def _precedes(self, write: Write, read: cst.CSTNode) -> bool:
        """Whether the write is over when the read is made; in `x = x / n` the read comes first."""
        own = self._model.small_statement(write.target)
        if own is not None and own is self._model.small_statement(read):
            return False
        return is_before(self._model, write.target, read)


@dataclass(slots=True)
class _Writes:
    """Of a variable, in the order of the text: those of a loop, and by their bodies those that are not."""

    inside: list[Write] = field(default_factory=list)
    behind: dict[cst.CSTNode | None, list[Write]] = field(default_factory=dict)
    is_loop: bool = False  # the loop itself writes it


def _known_reads(model: Model) -> dict[Loop | None, Reads]:
    return {}


def _compares_lengths(guard: Guard) -> bool:
    """`if len(text) > len(shown): shown = text`, of what grows all the time."""
    match guard.test:
        case cst.Comparison(
            left=cst.Call(func=cst.Name(value="len")),
            comparisons=[cst.ComparisonTarget(comparator=cst.Call(func=cst.Name(value="len")))],
        ):
            return True
    return False


def is_last_of(part: cst.Subscript, whole: cst.CSTNode) -> bool:
    """`values[-1]`."""
    match part.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.UnaryOperation(cst.Minus(), cst.Integer(value="1"))))]:
            return part.value is whole
    return False
