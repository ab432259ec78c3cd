"""Which of the results of a function a variable gets: `count, loss = self.compute(batch)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function, Write
    from torchlint.semantics.model import Model


def place_of(model: Model, write: Write) -> int | None:
    """Which element of what is taken apart a variable gets."""
    element = model.parent(write.target)
    pattern = model.parent(element) if element is not None else None
    if not isinstance(pattern, cst.Tuple) or not isinstance(model.parent(pattern), cst.AssignTarget):
        return None
    if any(isinstance(part, cst.StarredElement) for part in pattern.elements):
        return None
    return next((place for place, part in enumerate(pattern.elements) if part is element), None)


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
