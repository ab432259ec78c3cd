"""LibCST's node classes without what costs most in them.

Tables are keyed by nodes, and nodes are asked of what class they are, a hundred times for each line of a file. LibCST
hashes a node by a function in Python and, as its classes are abstract ones, answers `isinstance` by another.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator
from typing import Any

import libcst as cst


class _Plain(ABCMeta):
    """Of classes with no objects but their own and those of subclasses: LibCST registers none with another."""

    __instancecheck__ = type.__instancecheck__


def lighten() -> None:
    """For the whole process: nodes are still compared and hashed by identity, and of the same classes.

    Classes that another release of LibCST makes in another way stay as they are.
    """
    abstract: list[Any] = [cls for cls in set(_with_subclasses(cst.CSTNode)) if type(cls) is ABCMeta]
    for cls in abstract:
        cls.__hash__ = object.__hash__
        cls.__class__ = _Plain


def _with_subclasses(cls: Any) -> Iterator[Any]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)
