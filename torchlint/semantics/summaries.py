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
Keys = tuple[set[Any], ...]
"""Of each table, in the order of `Tables.tables`."""


class Watched(dict[_Key, _Entry]):
    """A table that notes which of its entries were asked for, also those that it lacks."""

    asked: set[_Key]

    def __init__(self) -> None:
        super().__init__()
        self.asked = set()

    def get(self, key: _Key, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


class Tables:
    """What functions know of each other: filled in one round over the file, read in the next.

    What one function notes is kept in `journal`, so that it need not run again to note the same.
    """

    def __init__(self) -> None:
        self.parameters: Watched[Function, dict[str, Value]] = Watched()
        self.returns: Watched[Function, Value] = Watched()
        self.bindings: Watched[Binding, Value] = Watched()
        self.call_grads: Watched[Function, set[bool | None]] = Watched()
        self.journal: Journal = []

    def note_parameter(self, function: Function, name: str, value: Value) -> None:
        self._note(_add_parameter, function, name, value)

    def note_return(self, function: Function, value: Value) -> None:
        self._note(_add_return, function, value)

    def note_binding(self, binding: Binding, value: Value) -> None:
        self._note(_add_binding, binding, value)

    def note_call_grad(self, function: Function, enabled: bool | None) -> None:
        self._note(_add_call_grad, function, enabled)

    def _note(self, add: Callable[..., None], *what: Any) -> None:
        add(self, *what)
        self.journal.append((add, what))

    def note_again(self, journal: Journal) -> None:
        for add, what in journal:
            add(self, *what)

    def for_one_call(self, function: Function, handed: dict[str, Value], grad: bool | None) -> Tables:
        """The same, where a function is only called with these arguments."""
        tables = Tables()
        tables.returns, tables.bindings = self.returns, self.bindings
        tables.parameters.update(self.parameters)
        tables.parameters[function] = handed
        tables.call_grads[function] = {grad}
        return tables

    def tables(self) -> tuple[Watched[Any, Any], ...]:
        return (self.parameters, self.returns, self.bindings, self.call_grads)

    def start_watching(self) -> Keys:
        """Per table, the keys that are asked for from now on."""
        for table in self.tables():
            table.asked = set()
        return tuple(table.asked for table in self.tables())

    def changes(self, later: Tables) -> Keys:
        """Per table, the keys whose entries are others in later tables."""
        return tuple(
            {key for key in before.keys() | after.keys() if dict.get(before, key) != dict.get(after, key)}
            for before, after in zip(self.tables(), later.tables())
        )


def _add_parameter(tables: Tables, function: Function, name: str, value: Value) -> None:
    known = tables.parameters.setdefault(function, {})
    known[name] = join(known[name], value) if name in known else value


def _add_return(tables: Tables, function: Function, value: Value) -> None:
    known = dict.get(tables.returns, function)
    tables.returns[function] = value if known is None else join(known, value)


def _add_binding(tables: Tables, binding: Binding, value: Value) -> None:
    known = dict.get(tables.bindings, binding)
    tables.bindings[binding] = value if known is None else join(known, value)


def _add_call_grad(tables: Tables, function: Function, enabled: bool | None) -> None:
    tables.call_grads.setdefault(function, set()).add(enabled)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run over a function noted, and what it read: entries of the tables of the round before, and values in
    other functions."""

    journal: Journal
    grads: dict[cst.CSTNode, bool | None]
    asked: Keys
    looked_into: set[Function]

    def is_stale(self, changed: Keys, rerun: set[Function]) -> bool:
        """Whether anything that it read has changed, or may have: in functions that ran in the last round."""
        if not self.looked_into.isdisjoint(rerun):
            return True
        return any(not keys.isdisjoint(asked) for keys, asked in zip(changed, self.asked))
