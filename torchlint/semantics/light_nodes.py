"""LibCST's node classes without what costs most in them.

Tables are keyed by nodes, and nodes are asked of what class they are, a hundred times for each line of a file. LibCST
hashes a node by a function in Python and, as its classes are abstract ones, answers `isinstance` by another. Four of
ten nodes that its parser makes are white space, of which hardly any differ.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator
from typing import Any

import libcst as cst

_white_space: dict[str, Any] = {}


class _Plain(ABCMeta):
    """Of classes with no objects but their own and those of subclasses: LibCST registers none with another."""

    __instancecheck__ = type.__instancecheck__


class _Shared(_Plain):
    """Of a class that has one object for each text."""

    def __call__(cls, value: str) -> Any:
        if value not in _white_space:
            _white_space[value] = super().__call__(value)
        return _white_space[value]


def lighten() -> None:
    """For the whole process. Nodes are compared and hashed by identity, as before."""
    white_space: Any = cst.SimpleWhitespace
    for cls in set(_with_subclasses(cst.CSTNode)):
        cls.__hash__ = object.__hash__
        cls.__class__ = _Shared if cls is white_space else _Plain


def _with_subclasses(cls: Any) -> Iterator[Any]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)
