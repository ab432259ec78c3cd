"""Which of the results of a function a variable gets: `count, loss = self.compute(batch)`."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function, Write
    from torchlint.semantics.model import Model


def place_of(model: Model, write: Write) -> int | None:
    """Which element of what an assignment takes apart a variable gets; None of what a star gathers, or behind it."""
    element = model.parent(write.target)
    pattern = model.parent(element) if element is not None else None
    if not isinstance(pattern, (cst.Tuple, cst.List)) or not isinstance(model.parent(pattern), cst.AssignTarget):
        return None
    plain = takewhile(lambda part: isinstance(part, cst.Element), pattern.elements)
    return next((place for place, part in enumerate(plain) if part is element), None)


def _element(value: cst.BaseExpression, place: int) -> cst.BaseExpression | None:
    """The element of a tuple that is written out."""
    if not isinstance(value, cst.Tuple) or place >= len(value.elements):
        return None
    starred = any(isinstance(part, cst.StarredElement) for part in value.elements[: place + 1])
    return None if starred else value.elements[place].value


def returned_at(function: Function, place: int | None) -> list[cst.BaseExpression] | None:
    """What each return of a function gives, or of what it gives the element at a place; None where one has no such."""
    values = [node.value for node in function.returns if node.value is not None]
    if place is None:
        return values
    parts = [part for value in values if (part := _element(value, place)) is not None]
    return parts if parts and len(parts) == len(function.returns) else None
