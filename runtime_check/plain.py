"""What JSON can hold of a verdict."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any


def plain(value: Any) -> Any:
    """Nested values with enums as their values, sets as sorted lists, and null for infinity, which JSON has not."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value
