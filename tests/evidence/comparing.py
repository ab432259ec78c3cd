"""Hold what two runs computed against each other, bit by bit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

Leaves = dict[str, Any]


@dataclass
class Comparison:
    """Names of what differs, and the largest differences of the numbers among these."""

    compared: int = 0
    numbers: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)  # the same number in another type
    texts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # in one of the runs
    absolute: float = 0.0
    relative: float = 0.0

    @property
    def equal(self) -> bool:
        return not (self.numbers or self.types or self.texts or self.missing)


def compare(before: Leaves, after: Leaves) -> Comparison:
    result = Comparison(compared=len(before), missing=sorted(before.keys() ^ after.keys()))
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        if same(old, new):
            continue
        if isinstance(old, str) and isinstance(new, str):
            result.texts.append(name)
            continue
        absolute, relative = differences(old, new)
        (result.numbers if absolute else result.types).append(name)
        result.absolute = max(result.absolute, absolute)
        result.relative = max(result.relative, relative)
    return result


def same(before: Any, after: Any) -> bool:
    """Equal in type, shape, dtype and every bit."""
    if type(before) is not type(after):
        return False
    if not isinstance(before, torch.Tensor):
        return repr(before) == repr(after)  # NaN is NaN, and -0.0 is not 0.0
    if before.dtype != after.dtype or before.shape != after.shape:
        return False
    return before.contiguous().numpy().tobytes() == after.contiguous().numpy().tobytes()


def differences(before: Any, after: Any) -> tuple[float, float]:
    """The largest absolute and relative difference; infinite for what is no number, or of another shape."""
    try:
        old, new = (torch.as_tensor(value).to(torch.float64).flatten() for value in (before, after))
        absolute = (old - new).abs()
    except (TypeError, ValueError, RuntimeError):
        return math.inf, math.inf
    if not absolute.numel():
        return 0.0, 0.0
    relative = absolute / torch.maximum(old.abs(), new.abs())
    return float(absolute.nan_to_num(math.inf).max()), float(relative.nan_to_num(0.0).max())
