"""What the functions of a file know of each other, and what each of them was told when it ran."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import libcst as cst

from torchlint.semantics.entities import Binding, Function
from torchlint.semantics.values import Value, join

_Key = TypeVar("_Key")
_Entry = TypeVar("_Entry")
Journal = list[tuple[Callable[..., None], tuple[Any, ...]]]
Answers = tuple[dict[Any, Any], ...]
"""Of each table, in the order of `Tables.tables`: what was asked for, and the entry that was there."""


class Watched(dict[_Key, _Entry]):
    """A table that notes which of its entries were asked for, also those that it lacks. Entries are immutable."""

    answers: dict[_Key, _Entry | None]

    def __init__(self) -> None:
        super().__init__()
        self.answers = {}

    def get(self, key: _Key, default: Any = None) -> Any:
        entry = super().get(key)
        self.answers.setdefault(key, entry)
        return default if entry is None else entry


class Tables:
    """What functions know of each other: filled in one round over the file, read in the next; in the first at once.

    What one function notes is kept in `journal`, so that it need not run again to note the same.
    """

    def __init__(self) -> None:
        self.parameters: Watched[Function, dict[str, Value]] = Watched()
        self.returns: Watched[Function, Value] = Watched()
        self.bindings: Watched[Binding, Value] = Watched()
        self.call_grads: Watched[Function, frozenset[bool | None]] = Watched()
        self.defaults: Watched[cst.BaseExpression, Value] = Watched()  # of parameters
        self.journal: Journal = []

    def note_parameter(self, function: Function, name: str, value: Value) -> None:
        self._note(_add_parameter, function, name, value)

    def note_return(self, function: Function, value: Value) -> None:
        self._note(_add_return, function, value)

    def note_binding(self, binding: Binding, value: Value) -> None:
        self._note(_add_binding, binding, value)

    def note_call_grad(self, function: Function, enabled: bool | None) -> None:
        self._note(_add_call_grad, function, enabled)

    def note_default(self, node: cst.BaseExpression, value: Value) -> None:
        self._note(_add_default, node, value)

    def _note(self, add: Callable[..., None], *what: Any) -> None:
        add(self, *what)
        self.journal.append((add, what))

    def note_again(self, journal: Journal) -> None:
        for add, what in journal:
            add(self, *what)

    def for_one_call(self, function: Function, handed: dict[str, Value], grad: bool | None) -> Tables:
        """The same, where a function is only called with these arguments."""
        tables = Tables()
        tables.returns, tables.bindings, tables.defaults = self.returns, self.bindings, self.defaults
        tables.parameters.update(self.parameters)
        tables.parameters[function] = handed
        tables.call_grads[function] = frozenset([grad])
        return tables

    def tables(self) -> tuple[Watched[Any, Any], ...]:
        return (self.parameters, self.returns, self.bindings, self.call_grads, self.defaults)

    def answers(self) -> Answers:
        return tuple(table.answers for table in self.tables())

    def note_answers(self, answers: Answers) -> None:
        """From now on, note there what is asked for."""
        for table, notes in zip(self.tables(), answers):
            table.answers = notes


def no_answers() -> Answers:
    """What a run begins with: it has asked for nothing."""
    return {}, {}, {}, {}, {}


def _add_parameter(tables: Tables, function: Function, name: str, value: Value) -> None:
    known = dict.get(tables.parameters, function, {})
    tables.parameters[function] = {**known, name: join(known[name], value) if name in known else value}


def _add_return(tables: Tables, function: Function, value: Value) -> None:
    known = dict.get(tables.returns, function)
    tables.returns[function] = value if known is None else join(known, value)


def _add_binding(tables: Tables, binding: Binding, value: Value) -> None:
    known = dict.get(tables.bindings, binding)
    tables.bindings[binding] = value if known is None else join(known, value)


def _add_call_grad(tables: Tables, function: Function, enabled: bool | None) -> None:
    tables.call_grads[function] = dict.get(tables.call_grads, function, frozenset()) | {enabled}


def _add_default(tables: Tables, node: cst.BaseExpression, value: Value) -> None:
    tables.defaults[node] = value


@dataclass(frozen=True, slots=True)
class Run:
    """What one run over a function noted, and what it read: entries of tables, and values in other functions."""

    journal: Journal
    grads: dict[cst.CSTNode, bool | None]
    answers: Answers
    looked_into: set[Function]

    def is_stale(self, tables: Tables, rerun: set[Function]) -> bool:
        """Whether anything that it read is different in these tables, or may be: in functions that ran just now."""
        if not self.looked_into.isdisjoint(rerun):
            return True
        return any(
            (entry := dict.get(table, key)) is not answer and entry != answer
            for table, answers in zip(tables.tables(), self.answers)
            for key, answer in answers.items()
        )
