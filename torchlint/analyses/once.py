"""Analyses that several rules and fixers ask for, worked out once for a file, or for each of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_Found = TypeVar("_Found")
_Node = TypeVar("_Node")


def once(analysis: Callable[[Model], Iterable[_Found]]) -> Callable[[Model], tuple[_Found, ...]]:
    """Makes of a function that goes through a file one that does so at the first call for its model only."""

    def run(model: Model) -> tuple[_Found, ...]:
        return tuple(analysis(model))

    @wraps(analysis)
    def found(model: Model) -> tuple[_Found, ...]:
        return model.once(run)

    return found


def once_for_each(analysis: Callable[[Model, _Node], _Found]) -> Callable[[Model, _Node], _Found]:
    """The same for a function that says something of one node, or of whatever else it is given."""

    def answers(_: Model) -> dict[_Node, _Found]:
        return {}

    @wraps(analysis)
    def found(model: Model, node: _Node) -> _Found:
        known = model.once(answers)
        if node not in known:
            known[node] = analysis(model, node)
        return known[node]

    return found
