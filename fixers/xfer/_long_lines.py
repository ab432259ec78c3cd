"""Lines that a tensor is made and copied on, which would be too long where it is made on the device at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.finding import Edit
    from torchlint.semantics.model import Model

_FEW = 8  # characters more than the lines of the file have


def joins_lines_too_long(move: cst.Call, edits: Sequence[Edit], model: Model) -> bool:
    """Whether taking the copy away makes one line of two, which is longer than any should be."""
    start, end = model.span(model.statement(move))
    text, after = model.source.text, model.source.text[start:end]
    inside = [edit for edit in edits if start <= edit.start and edit.end <= end]
    if not any("\n" in text[edit.start : edit.end] for edit in inside):
        return False
    for edit in sorted(inside, key=lambda edit: edit.start, reverse=True):
        after = after[: edit.start - start] + edit.text + after[edit.end - start :]
    margin = start - (text.rfind("\n", 0, start) + 1)
    longest = max((len(line) for line in (" " * margin + after).splitlines()), default=0)
    return longest > model.line_length + _FEW


def grows_too_long(move: cst.Call, edits: Sequence[Edit], allowed: int, model: Model, times: int = 1) -> bool:
    """Whether one of the lines that make and copy the tensor grows that was too long before, or is longer than allowed
    then, where that many tensors of the statement grow alike."""
    grown = _grown(move, edits, model)
    return any(length > model.line_length or length + times * more > allowed for length, more in grown)


def outgrows_limit(move: cst.Call, edits: Sequence[Edit], model: Model) -> bool:
    """Whether one of them that was too long before grows by more than a few characters."""
    return any(length > model.line_length and more > 2 * _FEW for length, more in _grown(move, edits, model))


def _grown(move: cst.Call, edits: Sequence[Edit], model: Model) -> list[tuple[int, int]]:
    """The length of each line of the statement that grows, and by how much."""
    start, end = model.span(move)
    growth: Counter[int] = Counter()
    for edit in edits:
        if start <= edit.start <= end:
            growth[model.source.line_number(edit.start)] += len(edit.text) - (edit.end - edit.start)
    return [(len(model.source.line(row)), more) for row, more in growth.items() if more > 0]
