"""LibCST's node classes without what costs most in them.

Tables are keyed by nodes, and nodes are asked of what class they are, a hundred times for each line of a file. LibCST
hashes a node by a function in Python and, as its classes are abstract ones, answers `isinstance` by another. Its parser
makes twenty nodes for each line, of frozen dataclasses, whose fields are set one by one through a function, and which
check what they are given. To make two hundred such classes is most of what importing LibCST takes.
"""

from __future__ import annotations

import dataclasses
import sys
from abc import ABCMeta
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any


class _Plain(ABCMeta):
    """Of classes with no objects but their own and those of subclasses: LibCST registers none with another."""

    __instancecheck__ = type.__instancecheck__


def import_lightly() -> None:
    """Import LibCST with classes of nodes that are not frozen and check nothing. Where something else has imported it
    before, they stay as they are."""
    if "libcst" in sys.modules:
        return
    dataclasses.dataclass = _light_dataclass
    try:
        import libcst  # noqa: F401
    finally:
        dataclasses.dataclass = dataclass


def _light_dataclass(cls: Any = None, /, **options: Any) -> Any:
    """Nodes say by themselves how they compare and print: methods for that would be made in vain."""
    if cls is None:
        return partial(_light_dataclass, **options)
    if any(base.__name__ == "CSTNode" for base in cls.__mro__):
        options |= {"frozen": False, "eq": False, "repr": False}
        if "__post_init__" in vars(cls):
            del cls.__post_init__
    return dataclass(cls, **options)


def lighten() -> None:
    """For the whole process: nodes are still compared and hashed by identity, and of the same classes.

    Classes that another release of LibCST makes in another way stay as they are.
    """
    import libcst as cst

    abstract: list[Any] = [cls for cls in set(_with_subclasses(cst.CSTNode)) if type(cls) is ABCMeta]
    for cls in abstract:
        cls.__hash__ = object.__hash__
        cls.__class__ = _Plain


def _with_subclasses(cls: Any) -> Iterator[Any]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)
