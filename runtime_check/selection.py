"""Which of several fixes can be made together, where each by itself is harmless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Fix = TypeVar("Fix")


def agreeing(
    fixes: Sequence[Fix], objection: Callable[[Sequence[Fix]], str]
) -> tuple[list[Fix], list[tuple[Fix, str]]]:
    """The fixes to which, together, there is no objection, and those left out for it, each with the objection.

    While there is one, the shortest beginning that raises it is sought by halving; its last fix is left out. Asks
    about log2(n) sets for each fix left out, and never about a single one.
    """
    kept = list(fixes)
    dropped: list[tuple[Fix, str]] = []
    while len(kept) > 1 and (reason := objection(kept)):
        low, high = 2, len(kept)
        while low < high:
            middle = (low + high) // 2
            if shorter := objection(kept[:middle]):
                high, reason = middle, shorter
            else:
                low = middle + 1
        dropped.append((kept.pop(low - 1), reason))
    return kept, dropped
