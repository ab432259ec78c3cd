"""Does the rewritten program compute the same? Losses, parameters, random streams and printed lines, in this order.

The yardstick is the original against itself: run again, and run with its initial parameters disturbed in the last
place, which shows how far rounding alone carries this program. An absolute tolerance cannot tell the two apart: a
convolution's bias before a batch norm drifts by percents in a correct rewrite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from .printed import LineDifference, first_difference
from .run import Parameter, Run

FACTOR = 30.0  # how far beyond the original's own rounding a rewrite may go
_ROUNDING = {"float64": 1e-12, "float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}


class Sameness(str, Enum):
    IDENTICAL = "identical"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepDifference:
    step: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Distances are relative; an envelope is the largest distance of the original from itself, times `FACTOR`."""

    verdict: Sameness
    reason: str
    losses: int = 0
    parameters: int = 0
    deterministic_baseline: bool = True
    first_difference: StepDifference | None = None
    loss_distance: float = 0.0
    loss_envelope: float = 0.0
    parameter_distance: float = 0.0
    parameter_envelope: float = 0.0
    printed: LineDifference | None = None


@dataclass(frozen=True, slots=True)
class _Evidence:
    before: Run
    again: Run
    after: Run
    disturbed: Sequence[Run]

    @property
    def baselines(self) -> list[Run]:
        return [self.again, *self.disturbed]

    @property
    def rounding(self) -> float:
        return max((_ROUNDING.get(parameter.dtype, 0.0) for parameter in self.before.parameters), default=1.3e-6)


def is_identical(one: Run, other: Run) -> bool:
    return (
        _same_losses(one, other)
        and [parameter.bits for parameter in one.parameters] == [parameter.bits for parameter in other.parameters]
        and one.random == other.random
    )


def needs_envelope(before: Run, again: Run, after: Run) -> bool:
    """Whether it depends on the original's own rounding if the two count as the same."""
    if not before.parameters or is_identical(before, after):
        return False
    return not _obvious_difference(_Evidence(before, again, after, ()))


def compare(before: Run, again: Run, after: Run, disturbed: Sequence[Run] = ()) -> Equivalence:
    """`again` is the original once more, `disturbed` the original from disturbed parameters."""
    evidence = _Evidence(before, again, after, disturbed)
    line = first_difference(before.printed, again.printed, after.printed)
    if not before.losses and not before.parameters:
        return _by_print(evidence, line)
    verdict, reason = _by_numbers(evidence)
    distances = _loss_distances(before, after)
    envelope = _cumulative([_loss_distances(before, baseline) for baseline in evidence.baselines], len(distances))
    worst = max(_parameter_margins(evidence), key=lambda pair: pair[0] / pair[1], default=(0.0, 0.0))
    return Equivalence(
        verdict,
        reason,
        losses=len(before.losses),
        parameters=len(before.parameters),
        deterministic_baseline=is_identical(before, again),
        first_difference=_first_loss_difference(before, after),
        loss_distance=max(distances, default=0.0),
        loss_envelope=FACTOR * max(envelope, default=0.0),
        parameter_distance=worst[0],
        parameter_envelope=worst[1],
        printed=line,
    )


def _by_print(evidence: _Evidence, line: LineDifference | None) -> Equivalence:
    before, after = evidence.before, evidence.after
    deterministic = before.printed == evidence.again.printed
    if shifted := _shifted_streams(evidence):
        verdict, reason = Sameness.DIFFERENT, f"{shifted} random numbers are drawn differently"
    elif line is not None:
        verdict, reason = Sameness.DIFFERENT, f"line {line.line} of the output differs"
    elif not before.printed.strip():
        verdict, reason = Sameness.UNKNOWN, "the program trained nothing and printed nothing to compare"
    elif before.printed == after.printed:
        verdict, reason = Sameness.IDENTICAL, "the output is the same, character by character"
    else:
        verdict, reason = Sameness.EQUIVALENT, "the output is the same but for rounding and durations"
    return Equivalence(verdict, reason, deterministic_baseline=deterministic, printed=line)


def _by_numbers(evidence: _Evidence) -> tuple[Sameness, str]:
    if reason := _obvious_difference(evidence):
        return Sameness.DIFFERENT, reason
    if is_identical(evidence.before, evidence.after):
        return Sameness.IDENTICAL, "losses, parameters and random streams agree bit by bit"
    if (step := _step_outside_envelope(evidence)) is not None:
        return Sameness.DIFFERENT, f"the loss of step {step} is farther off than rounding carries the original"
    if any(distance > bound for distance, bound in _parameter_margins(evidence)):
        return Sameness.DIFFERENT, "parameters are farther off than rounding carries the original"
    return Sameness.EQUIVALENT, "differs by no more than rounding makes the original differ from itself"


def _obvious_difference(evidence: _Evidence) -> str:
    before, after = evidence.before, evidence.after
    if len(before.losses) != len(after.losses):
        return f"{len(after.losses)} backward passes instead of {len(before.losses)}"
    shapes = [[(parameter.shape, parameter.dtype) for parameter in run.parameters] for run in (before, after)]
    if shapes[0] != shapes[1]:
        return "the optimizers hold other parameters"
    shifted = _shifted_streams(evidence)
    return f"{shifted} random numbers are drawn differently" if shifted else ""


def _shifted_streams(evidence: _Evidence) -> str:
    """A stream that the original itself leaves anywhere says nothing."""
    before, again, after = evidence.before.random, evidence.again.random, evidence.after.random
    return " and ".join(name for name in before if before[name] == again.get(name) != after.get(name))


def _step_outside_envelope(evidence: _Evidence) -> int | None:
    before = evidence.before
    distances = _loss_distances(before, evidence.after)
    envelope = _cumulative([_loss_distances(before, baseline) for baseline in evidence.baselines], len(distances))
    for (step, _), distance, own in zip(before.losses, distances, envelope, strict=True):
        if distance > max(evidence.rounding, FACTOR * own):
            return step
    return None


def _parameter_margins(evidence: _Evidence) -> list[tuple[float, float]]:
    """Each parameter's distance, and how far it may be: the same parameter of the disturbed original sets the scale."""
    margins = []
    for at, (one, other) in enumerate(zip(evidence.before.parameters, evidence.after.parameters, strict=False)):
        own = [_parameter_distance(one, run.parameters[at]) for run in evidence.baselines if at < len(run.parameters)]
        margins.append((_parameter_distance(one, other), FACTOR * max(evidence.rounding, *own)))
    return margins


def _parameter_distance(one: Parameter, other: Parameter) -> float:
    if one.bits == other.bits:
        return 0.0
    scale = max(one.norm, other.norm)
    return max(_distance(one.norm, other.norm, scale), _distance(one.projection, other.projection, scale))


def _same_losses(one: Run, other: Run) -> bool:
    return len(one.losses) == len(other.losses) and not any(_loss_distances(one, other))


def _loss_distances(one: Run, other: Run) -> list[float]:
    """Relative to the larger of the two; a loss that passes through zero is measured on the scale of the others."""
    scale = 1e-3 * max((abs(value) for _, value in one.losses if math.isfinite(value)), default=0.0)
    pairs = zip(one.losses, other.losses, strict=False)
    return [_distance(a, b, max(abs(a), abs(b), scale)) for (_, a), (_, b) in pairs]


def _distance(a: float, b: float, scale: float) -> float:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) / scale if math.isfinite(a) and math.isfinite(b) else math.inf


def _cumulative(series: Sequence[Sequence[float]], length: int) -> list[float]:
    """At each place the largest value of any series up to there."""
    largest, envelope = 0.0, []
    for at in range(length):
        largest = max([largest, *(values[at] for values in series if at < len(values))])
        envelope.append(largest)
    return envelope


def _first_loss_difference(one: Run, other: Run) -> StepDifference | None:
    for ((step, before), (_, after)), distance in zip(
        zip(one.losses, other.losses, strict=False), _loss_distances(one, other), strict=True
    ):
        if distance:
            return StepDifference(step, before, after)
    return None
