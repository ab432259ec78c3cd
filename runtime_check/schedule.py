"""In which order the versions run: A and A' are the original twice, B is the rewritten one."""

from __future__ import annotations

import random
from enum import Enum


class Side(str, Enum):
    ORIGINAL = "A"
    CONTROL = "A'"
    CHANGED = "B"


def blocks(count: int, seed: int) -> list[tuple[Side, ...]]:
    """Each block holds every side once, in random order, so that drift of the machine favours none."""
    shuffled = random.Random(seed)
    return [tuple(shuffled.sample(list(Side), len(Side))) for _ in range(count)]
