"""Which spans of a text are changed by edits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.finding import Edit


class Edited:
    """Which spans of a text are changed."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        self._spans = _merged((edit.start, edit.end) for edit in edits)

    def __contains__(self, span: tuple[int, int]) -> bool:
        at = bisect_left(self._spans, span[0], key=lambda edited: edited[1])
        return at < len(self._spans) and self._spans[at][0] <= span[1]


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in the order of the text, those that overlap as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
