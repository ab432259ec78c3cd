"""Analyses that several rules and fixers ask for, worked out once for a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_Found = TypeVar("_Found")


def once(analysis: Callable[[Model], Iterable[_Found]]) -> Callable[[Model], tuple[_Found, ...]]:
    """Makes of a function that goes through a file one that does so at the first call for its model only."""

    def run(model: Model) -> tuple[_Found, ...]:
        return tuple(analysis(model))

    @wraps(analysis)
    def found(model: Model) -> tuple[_Found, ...]:
        return model.once(run)

    return found
