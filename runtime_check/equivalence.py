"""Does the rewritten program compute the same? Losses, gradients, parameters, random streams, and what it prints and
writes, in this order.

Equal bits are equal. Where bits differ, both versions run once more in float64: rounding shrinks there by eight orders
of magnitude, another computation does not. Where that cannot be had (the original differs from itself, or does not run
in float64), the yardstick is the original against itself: run again, and run with its initial parameters disturbed in
the last place, which shows how far rounding alone carries this program. An absolute tolerance could not tell: a
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
DOUBLE = 1e-9  # what two versions may differ by in float64, relative, or
SHRINK = 1e-5  # this part of what they differ by in the program's own types
DIGITS = 900.0  # how many times its own rounding may part the losses of what is equal in float64
_ROUNDING = {"float64": 1e-12, "float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}


class Sameness(str, Enum):
    """Equal bits; equal in float64; equal within the noise of the original."""

    IDENTICAL = "identical"
    ROUNDING = "rounding"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepDifference:
    step: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """The norms of the gradient of a parameter that are the first to differ. A parameter without a name is a number."""

    step: int
    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Distances are relative; an envelope is the largest distance of the original from itself, times `FACTOR`.

    `double_distance` is the largest in float64, null where the two did not run in it. `files` are written with another
    content, though the original writes the same twice.
    """

    verdict: Sameness
    reason: str
    losses: int = 0
    parameters: int = 0
    deterministic_baseline: bool = True
    first_difference: StepDifference | None = None
    first_tensor: TensorDifference | None = None
    double_distance: float | None = None
    loss_distance: float = 0.0
    loss_envelope: float = 0.0
    parameter_distance: float = 0.0
    parameter_envelope: float = 0.0
    printed: LineDifference | None = None
    files: tuple[str, ...] = ()


Double = tuple[Run, Run]  # the original and the rewritten program in float64


@dataclass(frozen=True, slots=True)
class _Evidence:
    before: Run
    again: Run
    after: Run
    disturbed: Sequence[Run] = ()
    double: Double | None = None

    @property
    def baselines(self) -> list[Run]:
        return [self.again, *self.disturbed]

    @property
    def rounding(self) -> float:
        return max((_ROUNDING.get(parameter.dtype, 0.0) for parameter in self.before.parameters), default=1.3e-6)


def is_identical(one: Run, other: Run) -> bool:
    return (
        _same_losses(one, other)
        and _same_gradients(one, other)
        and [parameter.bits for parameter in one.parameters] == [parameter.bits for parameter in other.parameters]
        and one.random == other.random
    )


def is_open(before: Run, again: Run, after: Run) -> bool:
    """Whether it takes more than these runs, of which `again` is the original once more, to say what differs."""
    if not before.parameters or is_identical(before, after):
        return False
    return not _obvious_difference(_Evidence(before, again, after))


def loses_digits(before: Run, after: Run, disturbed: Sequence[Run] = ()) -> bool:
    """Whether losses are farther apart than rounding in the program's own types explains: casts to half precision are
    no difference in float64. Without the disturbed original, whether it takes that to tell."""
    distances = _loss_distances(before, after)
    own = _cumulative([_loss_distances(before, run) for run in disturbed], len(distances))
    least = 0.1 * _Evidence(before, before, after).rounding
    return any(distance > DIGITS * max(noise, least) for distance, noise in zip(distances, own, strict=True))


def compare(
    before: Run, again: Run, after: Run, disturbed: Sequence[Run] = (), double: Double | None = None
) -> Equivalence:
    """`again` is the original once more, `disturbed` the original from disturbed parameters."""
    evidence = _Evidence(before, again, after, disturbed, double)
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
        first_tensor=_first_tensor(evidence) if verdict is Sameness.DIFFERENT else None,
        double_distance=max(_distances(*double), default=0.0) if double is not None else None,
        loss_distance=max(distances, default=0.0),
        loss_envelope=FACTOR * max(envelope, default=0.0),
        parameter_distance=worst[0],
        parameter_envelope=worst[1],
        printed=line,
        files=_other_files(before, again, after),
    )


def _by_print(evidence: _Evidence, line: LineDifference | None) -> Equivalence:
    before, after = evidence.before, evidence.after
    deterministic = before.printed == evidence.again.printed
    if shifted := _shifted_streams(evidence):
        verdict, reason = Sameness.DIFFERENT, f"{shifted} random numbers are drawn differently"
    elif line is not None:
        verdict, reason = Sameness.DIFFERENT, f"line {line.line} of the output differs"
    elif not before.printed.strip():
        verdict, reason = Sameness.UNKNOWN, _nothing_to_compare(before)
    elif before.printed == after.printed:
        verdict, reason = Sameness.IDENTICAL, "the output is the same, character by character"
    else:
        verdict, reason = Sameness.EQUIVALENT, "the output is the same but for rounding and durations"
    files = _other_files(before, evidence.again, after)
    return Equivalence(verdict, reason, deterministic_baseline=deterministic, printed=line, files=files)


def _nothing_to_compare(run: Run) -> str:
    if run.why == "stop":
        return f"the program trained nothing, and printed nothing in the {len(run.steps)} steps it had: raise --steps"
    return "the program trained nothing and printed nothing to compare"


def _by_numbers(evidence: _Evidence) -> tuple[Sameness, str]:
    if reason := _obvious_difference(evidence):
        return Sameness.DIFFERENT, reason
    if is_identical(evidence.before, evidence.after):
        return Sameness.IDENTICAL, "losses, gradients, parameters and random streams agree bit by bit"
    if evidence.double is not None:
        return _in_double(evidence, evidence.double)
    if len(evidence.before.losses) != len(evidence.after.losses):
        return Sameness.DIFFERENT, _other_passes(evidence.before, evidence.after)
    if (step := _step_outside_envelope(evidence)) is not None:
        return Sameness.DIFFERENT, f"the loss of step {step} is farther off than rounding carries the original"
    if any(distance > bound for distance, bound in _parameter_margins(evidence)):
        return Sameness.DIFFERENT, "parameters are farther off than rounding carries the original"
    return Sameness.EQUIVALENT, "differs by no more than rounding makes the original differ from itself"


def _in_double(evidence: _Evidence, double: Double) -> tuple[Sameness, str]:
    if reason := _obvious_difference(_Evidence(double[0], double[0], double[1])):
        return Sameness.DIFFERENT, f"in float64, {reason}"
    largest = max(_distances(evidence.before, evidence.after), default=0.0)
    if max(_distances(*double), default=0.0) > max(DOUBLE, SHRINK * min(largest, 1.0)):
        return Sameness.DIFFERENT, "what differs does not vanish in float64, so it is no rounding"
    if loses_digits(evidence.before, evidence.after, evidence.disturbed):
        return Sameness.DIFFERENT, "equal in float64, but the rewrite loses digits in the program's own types"
    return Sameness.ROUNDING, "equal in float64: what differs is rounding"


def _distances(one: Run, other: Run) -> list[float]:
    """Of the losses, the gradients as a whole, and each parameter."""
    return [
        *_loss_distances(one, other),
        *_gradient_distances(one, other),
        *(_parameter_distance(a, b) for a, b in zip(one.parameters, other.parameters, strict=False)),
    ]


def _gradient_distances(one: Run, other: Run) -> list[float]:
    """Of the norm of all gradients together, step by step."""
    pairs = [(_total(a), _total(b)) for (_, a), (_, b) in zip(one.gradients, other.gradients, strict=False)]
    return [_distance(a, b, max(a, b)) for a, b in pairs]


def _total(norms: Sequence[float | None]) -> float:
    return math.hypot(*(norm or 0.0 for norm in norms))


def _obvious_difference(evidence: _Evidence) -> str:
    before, after = evidence.before, evidence.after
    if len(before.losses) != len(after.losses) and not before.gradients:
        return _other_passes(before, after)
    shapes = [[(parameter.shape, parameter.dtype) for parameter in run.parameters] for run in (before, after)]
    if shapes[0] != shapes[1]:
        return "the optimizers hold other parameters"
    if [len(norms) for _, norms in before.gradients] != [len(norms) for _, norms in after.gradients]:
        return f"{len(after.gradients)} optimizer steps instead of {len(before.gradients)}"
    shifted = _shifted_streams(evidence)
    return f"{shifted} random numbers are drawn differently" if shifted else ""


def _other_passes(before: Run, after: Run) -> str:
    return f"{len(after.losses)} backward passes instead of {len(before.losses)}"


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


def _first_tensor(evidence: _Evidence) -> TensorDifference | None:
    """The gradient that is the first to be farther off than rounding: in float64 where that was run, else on the scale
    of what the original's own gradients differ by."""
    if evidence.double is not None:
        (before, after), baselines, bound = evidence.double, [], DOUBLE
    else:
        before, after, baselines, bound = (
            evidence.before,
            evidence.after,
            evidence.baselines,
            FACTOR * evidence.rounding,
        )
    for at, ((step, old), (_, new)) in enumerate(zip(before.gradients, after.gradients, strict=False)):
        own = [run.gradients[at][1] for run in baselines if at < len(run.gradients)]
        scale = 1e-3 * max((norm or 0.0 for norm in old), default=0.0)
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            noise = max((_norm_distance(one, norms[index], scale) for norms in own if index < len(norms)), default=0.0)
            if _norm_distance(one, other, scale) > max(bound, FACTOR * noise):
                return TensorDifference(step, _name(before, len(old), index), one or 0.0, other or 0.0)
    return None


def _norm_distance(one: float | None, other: float | None, scale: float) -> float:
    a, b = one or 0.0, other or 0.0
    return _distance(a, b, max(a, b, scale))


def _name(run: Run, gradients: int, index: int) -> str:
    """Only where one optimizer holds all the parameters are its gradients in their order."""
    named = run.parameters[index].name if gradients == len(run.parameters) else ""
    return named or f"parameter {index}"


def _other_files(before: Run, again: Run, after: Run) -> tuple[str, ...]:
    steady = {name for name, digest in before.written.items() if again.written.get(name) == digest}
    missing_or_other = {name for name in steady if after.written.get(name) != before.written[name]}
    new = (
        set(after.written) - set(before.written) - set(again.written)
        if set(before.written) == set(again.written)
        else set()
    )
    return tuple(sorted(missing_or_other | new))


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


def _same_gradients(one: Run, other: Run) -> bool:
    """No gradient and one of zeros are the same."""
    if len(one.gradients) != len(other.gradients):
        return False
    pairs = zip(one.gradients, other.gradients, strict=True)
    return all(
        len(a) == len(b) and not any(_norm_distance(x, y, 0.0) for x, y in zip(a, b, strict=True))
        for (_, a), (_, b) in pairs
    )


def _loss_distances(one: Run, other: Run) -> list[float]:
    """Relative to the larger of the two; a loss that passes through zero is measured on the scale of the others. None
    where the same gradients came of another number of backward passes: their losses are not each other's."""
    if len(one.losses) != len(other.losses):
        return []
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
        zip(one.losses, other.losses, strict=False), _loss_distances(one, other), strict=False
    ):
        if distance:
            return StepDifference(step, before, after)
    return None
