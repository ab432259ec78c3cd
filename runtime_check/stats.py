"""From paired block times to a verdict with its interval.

One process is one sample: steps of the same process share its luck, and treating them as independent calls two runs
of the same code different about every second time. Each block gives log(B / sqrt(A A')) and, as a control that must
show no effect, log(A' / A).

Intervals are of 99 %: with 95 % two or three of a hundred comparisons of a program with itself come out as faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist, fmean, stdev

# Quantiles of Student's t for 1 to 30 degrees of freedom.
_T_995 = (
    *(63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169),
    *(3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845),
    *(2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750),
)
_T_80 = (
    *(1.376, 1.061, 0.978, 0.941, 0.920, 0.906, 0.896, 0.889, 0.883, 0.879),
    *(0.876, 0.873, 0.870, 0.868, 0.866, 0.865, 0.863, 0.862, 0.861, 0.860),
    *(0.859, 0.858, 0.858, 0.857, 0.856, 0.856, 0.855, 0.855, 0.854, 0.854),
)
TOLERANCE = 0.02
_NOISE = math.sqrt(1.5 / 2)  # the control has the noise of two processes, the effect that of one and a half


class Pace(str, Enum):
    FASTER = "faster"
    SAME = "same"
    NOT_SLOWER = "not_slower"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio with its 99 % confidence interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """`effect` is changed / original, `control` original / original; `detectable` the smallest relative change that
    this many blocks would show four times in five."""

    pace: Pace
    effect: Interval
    control: Interval
    control_spread: float
    detectable: float
    reason: str = ""


def student(p: float, freedom: int) -> float:
    """The quantile at p = 0.995 or 0.80."""
    table = _T_995 if p == 0.995 else _T_80
    if freedom <= len(table):
        return table[freedom - 1]
    z = NormalDist().inv_cdf(p)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def interval(logs: Sequence[float], least_spread: float = 0.0, freedom: int | None = None) -> Interval:
    """Of the mean, from the spread of the values, or from a larger one known from elsewhere."""
    middle = fmean(logs)
    if len(logs) < 2:
        return Interval(math.exp(middle), 0.0, math.inf)
    spread = max(stdev(logs), least_spread)
    half = student(0.995, freedom or len(logs) - 1) * spread / math.sqrt(len(logs))
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def compare(original: Sequence[float], control: Sequence[float], changed: Sequence[float]) -> Comparison:
    """Times per step of the three sides, block by block.

    Few blocks may lie close together by chance: the effect is taken to spread no less than the control says it does.
    """
    effects = [math.log(b / math.sqrt(a * a2)) for a, a2, b in zip(original, control, changed, strict=True)]
    controls = [math.log(a2 / a) for a, a2 in zip(original, control, strict=True)]
    spread = stdev(controls) if len(controls) > 1 else math.inf
    effect, check = interval(effects, _NOISE * spread, 2 * (len(effects) - 1)), interval(controls)
    pace, reason = _against_control(_pace(effect), effect, check)
    return Comparison(pace, effect, check, spread, _detectable(spread, len(effects)), reason)


def _pace(effect: Interval) -> Pace:
    if effect.high < 1:
        return Pace.FASTER
    if effect.low > 1 + TOLERANCE:
        return Pace.SLOWER
    if effect.low >= 1 / (1 + TOLERANCE) and effect.high <= 1 + TOLERANCE:
        return Pace.SAME
    return Pace.NOT_SLOWER if effect.high <= 1 + TOLERANCE else Pace.INCONCLUSIVE


def _against_control(pace: Pace, effect: Interval, control: Interval) -> tuple[Pace, str]:
    """A control that moved casts doubt on small effects only: the effect must clear the control's worst bound."""
    moved = not control.low <= 1 <= control.high and abs(math.log(control.ratio)) > math.log1p(TOLERANCE)
    if not moved or pace not in (Pace.FASTER, Pace.SLOWER):
        return pace, ""
    worst = max(abs(math.log(control.low)), abs(math.log(control.high)))
    bound = math.log(effect.high if pace is Pace.FASTER else effect.low)
    if abs(bound) > worst:
        return pace, "the original differed from itself too, but by less than this"
    return Pace.INCONCLUSIVE, "the original differed from itself by as much: the machine drifts"


def _detectable(spread: float, count: int) -> float:
    if count < 2:
        return math.inf
    freedom = 2 * (count - 1)
    quantiles = student(0.995, freedom) + student(0.80, freedom)
    return math.expm1(quantiles * _NOISE * spread / math.sqrt(count))
