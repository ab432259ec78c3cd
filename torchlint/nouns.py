"""Enumerations whose members are named so often that finding them costs."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, TypeVar

_Cls = TypeVar("_Cls", bound=type[Enum])


class Noun(Enum):
    __hash__ = object.__hash__  # as each member is there once; that of Enum is a function in Python


class _Plain(type):
    """The class of an enumeration has a `__getattr__` otherwise, until Python 3.12: with that, `Kind.TENSOR` is found
    four times as slowly as other attributes of classes."""

    def __iter__(cls: Any) -> Iterator[Any]:
        return iter(cls._member_map_.values())


def found_fast(cls: _Cls) -> _Cls:
    """The class, of which nobody asks for more than its members, all of them or by their names and values."""
    for member in cls:
        type.__setattr__(cls, member.name, member)  # in Python 3.10 they are elsewhere
    cls.__class__ = _Plain  # type: ignore[assignment]
    return cls
