"""Do two versions of a function do the same in one call, and in all of them?

What differs in float32 only, because sums were taken in another order, must vanish in float64; what does not vanish
there is another function. How far rounding may carry a function that amplifies it is read from the original itself,
with its arguments disturbed in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..equivalence import FACTOR, Sameness
from .call import Call, Reading
from .replay import Outcome, replay
from .version import FunctionError, Version
from .walk import Kind

DOUBLE = Reading(double=True)
DISTURBED = (Reading(True, 1), Reading(True, 2))
TOLERANCE = 1e-10  # relative, in float64; rounding is about 1e-16
# What is zero but for rounding has no scale of its own: it gets a share of the largest number beside it.
_SCALE_OF_NOISE = 1e-5
_SCALE_OF_ERRORS = 0.1
_INTEGERS = "other integers"
_SHOWN = 5


@dataclass(frozen=True)
class Difference:
    """At one place of the result, the arguments or the gradients. `distance` is relative to the largest number there;
    None where the two cannot be put on a scale."""

    where: str
    what: str
    before: str
    after: str
    distance: float | None = None


@dataclass(frozen=True)
class CallVerdict:
    """`distance` is the largest in the call's own precision, `distance_in_float64` that of the same call in float64."""

    label: str
    verdict: Sameness
    reason: str
    differences: tuple[Difference, ...] = ()
    distance: float = 0.0
    distance_in_float64: float | None = None
    notes: tuple[str, ...] = ()
    original_raises: bool = False


def compare_call(call: Call, old: Version, new: Version) -> CallVerdict:
    """Raises FunctionError where the call's arguments cannot be made for the original."""
    before = replay(call, old, old, Reading())
    try:
        after = replay(call, new, old, Reading())
    except FunctionError as error:
        return CallVerdict(call.label, Sameness.DIFFERENT, f"the new version does not take the arguments: {error}")
    found = [*differences(before, after)]
    notes = tuple(_notes(before, after))
    if not found:
        return CallVerdict(
            call.label, Sameness.IDENTICAL, _same(before), notes=notes, original_raises=bool(before.error)
        )
    distance = max((item.distance for item in found if item.distance is not None), default=0.0)
    shown = tuple(found[:_SHOWN])
    hard = [item for item in found if item.distance is None]
    if [*differences(before, replay(call, old, old, Reading()))]:
        reason = "the original does not agree with itself"
        return CallVerdict(call.label, Sameness.UNKNOWN, reason, shown, distance, None, notes)
    decisive = next((item for item in hard if item.what != _INTEGERS), None)
    if decisive is not None:
        reason = f"{decisive.where}: {decisive.what}"
        raises = bool(before.error)
        return CallVerdict(call.label, Sameness.DIFFERENT, reason, shown, distance, None, notes, raises)
    verdict, reason, in_double = _in_double(call, old, new, before, after, bool(hard))
    return CallVerdict(call.label, verdict, reason, shown, distance, in_double, notes)


def _same(outcome: Outcome) -> str:
    return f"both raise {outcome.error}" if outcome.error else "bit by bit the same"


def _in_double(
    call: Call, old: Version, new: Version, before: Outcome, after: Outcome, has_integers: bool
) -> tuple[Sameness, str, float | None]:
    exact, changed = (replay(call, version, old, DOUBLE) for version in (old, new))
    if exact.error or changed.error:
        failed = exact if exact.error else changed
        return Sameness.UNKNOWN, f"the numbers differ, and in float64 it raises {failed.error}: {failed.message}", None
    found = [*differences(exact, changed)]
    hard = next((item for item in found if item.distance is None), None)
    if hard is not None:
        return Sameness.DIFFERENT, f"{hard.where}: {hard.what}, in float64 too", None
    worst = max(found, key=lambda item: item.distance or 0.0, default=None)
    distance = worst.distance or 0.0 if worst else 0.0
    if worst and distance > TOLERANCE and distance > FACTOR * _own_rounding(call, old, exact):
        return Sameness.DIFFERENT, f"{worst.where}: off by {distance:.1e} in float64, which is no rounding", distance
    if has_integers:
        return Sameness.UNKNOWN, "integers differ, and agree in float64: rounding decides about them", distance
    if lost := _less_precise(before, after, exact):
        return Sameness.DIFFERENT, lost, distance
    return Sameness.EQUIVALENT, "differs by rounding, which vanishes in float64", distance


def _own_rounding(call: Call, old: Version, exact: Outcome) -> float:
    """How far the original moves when its arguments do in the last place of float64."""
    moved = (differences(exact, replay(call, old, old, reading), whole=False) for reading in DISTURBED)
    return max((item.distance or 0.0 for found in moved for item in found), default=0.0)


def _less_precise(before: Outcome, after: Outcome, exact: Outcome) -> str:
    """The new version's error must not be far beyond the original's, or a few roundings of its precision."""
    floor = _SCALE_OF_ERRORS * max(_largest(exact.values), _largest(exact.gradients))
    for group in ("values", "gradients"):
        truths, olds, news = (getattr(outcome, group) for outcome in (exact, before, after))
        for path, truth in truths.items():
            old, new = olds.get(path), news.get(path)
            if not all(isinstance(value, torch.Tensor) and value.is_floating_point() for value in (truth, old, new)):
                continue
            own, its = (_distance(truth, version, floor) for version in (old, new))
            if its > FACTOR * max(own, torch.finfo(old.dtype).eps):
                return f"{path}: loses precision, its error is {its:.1e} instead of {own:.1e}"
    return ""


def differences(before: Outcome, after: Outcome, whole: bool = True) -> Iterator[Difference]:
    """Everything that tells two outcomes apart; not `whole`: distances between numbers only."""
    if before.error or after.error:
        if before.error != after.error:
            one, other = (outcome.error or "no exception" for outcome in (before, after))
            yield Difference("the call", _raised(before, after), one, other)
        return
    scale = _largest(before.values)
    yield from _between("", before.values, after.values, scale, whole)
    scale = max(scale, _largest(before.gradients))
    yield from _between("gradient of ", before.gradients, after.gradients, scale, whole)
    for name in sorted(set(before.random) | set(after.random)):
        if whole and before.random.get(name) != after.random.get(name):
            yield Difference(f"random numbers of {name}", "drawn differently", "", "")


def _raised(before: Outcome, after: Outcome) -> str:
    if not before.error:
        return f"the new version raises {after.error}: {after.message.splitlines()[0] if after.message else ''}"
    return f"the original raises {before.error}, the new version {after.error or 'nothing'}"


def _between(
    prefix: str, before: Mapping[str, Any], after: Mapping[str, Any], scale: float, whole: bool
) -> Iterator[Difference]:
    for key in dict.fromkeys((*before, *after)):
        path = f"{prefix}{key}"
        if key not in before or key not in after:
            there = "only in the original" if key in before else "only in the new version"
            one, other = (_shown(side[key]) if key in side else "" for side in (before, after))
            yield Difference(path, there, one, other)
            continue
        one, other = before[key], after[key]
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            found = _tensors(path, one, other, _SCALE_OF_NOISE * scale)
        else:
            found = _plain(path, one, other)
        if found is not None and (whole or found.distance is not None):
            yield found


def _plain(path: str, one: Any, other: Any) -> Difference | None:
    if isinstance(one, float) and isinstance(other, float):
        if one == other or (math.isnan(one) and math.isnan(other)):
            return None
        finite = math.isfinite(one) and math.isfinite(other)
        distance = abs(one - other) / max(abs(one), abs(other)) if finite else None
        return Difference(path, "another number", repr(one), repr(other), distance)
    if type(one) is type(other) and one == other:
        return None
    what = "another value" if type(one) is type(other) and not isinstance(one, Kind) else "another kind"
    return Difference(path, what, _shown(one), _shown(other))


def _tensors(path: str, one: torch.Tensor, other: torch.Tensor, floor: float) -> Difference | None:
    for what in ("shape", "dtype", "device", "layout"):
        values = [getattr(tensor, what) for tensor in (one, other)]
        if values[0] != values[1]:
            before, after = (str(tuple(value) if what == "shape" else value) for value in values)
            return Difference(path, f"another {what}", before, after)
    if one.requires_grad != other.requires_grad:
        wants = str(one.requires_grad), str(other.requires_grad)
        return Difference(path, "requires a gradient in one version only", *wants)
    one, other = one.detach(), other.detach()
    if one.layout is not torch.strided:
        one, other = one.to_dense(), other.to_dense()
    if not one.is_floating_point() and not one.is_complex():
        if torch.equal(one, other):
            return None
        return Difference(path, _INTEGERS, *_first_pair(one, other, one != other))
    if one.is_complex():
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    apart = (one != other) & ~(one.isnan() & other.isnan())
    if not bool(apart.any()):
        return None
    odd = apart & ~(one.isfinite() & other.isfinite())
    if bool(odd.any()):
        return Difference(path, "infinite or no number in one version only", *_first_pair(one, other, odd))
    return Difference(path, "other numbers", *_first_pair(one, other, apart), _distance(one, other, floor))


def _distance(one: torch.Tensor, other: torch.Tensor, floor: float) -> float:
    """The largest difference between finite numbers, relative to the largest of `one`, or to a larger `floor`."""
    one, other = (tensor.detach().to(torch.float64) for tensor in (one, other))
    gap, scale = _maximum(one - other), max(_maximum(one), floor)
    return gap and (gap / scale if scale else math.inf)


def _largest(values: Mapping[str, Any]) -> float:
    tensors = (value.detach() for value in values.values() if isinstance(value, torch.Tensor))
    return max((_maximum(tensor) for tensor in tensors if tensor.is_floating_point()), default=0.0)


def _maximum(tensor: torch.Tensor) -> float:
    finite = tensor[tensor.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0


def _first_pair(one: torch.Tensor, other: torch.Tensor, apart: torch.Tensor) -> tuple[str, str]:
    place = tuple(apart.nonzero()[0].tolist())
    index = str(list(place)) if place else ""
    return f"{index} {one[place].item()!r}".strip(), f"{index} {other[place].item()!r}".strip()


def _notes(before: Outcome, after: Outcome) -> Iterator[str]:
    if before.printed != after.printed:
        yield "the two print different text"
    for path, source in sorted(before.shared ^ after.shared):
        side = "the original" if (path, source) in before.shared else "the new version"
        yield f"{path} lies in the memory of {source} in {side} only: writing to one changes the other"


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)} and {value.dtype}"
    return str(value)[:80]


def together(verdicts: Sequence[CallVerdict]) -> tuple[Sameness, str]:
    """The worst of all calls, and what is said about it. Unknown where there is no call."""
    for wanted in (Sameness.DIFFERENT, Sameness.UNKNOWN, Sameness.EQUIVALENT):
        found = [verdict for verdict in verdicts if verdict.verdict is wanted]
        if found:
            others = f" ({len(found)} of {len(verdicts)} calls)" if len(verdicts) > 1 else ""
            return wanted, f"{found[0].label}: {found[0].reason}{others}"
    if not verdicts:
        return Sameness.UNKNOWN, "no call was compared"
    return Sameness.IDENTICAL, "results, gradients, arguments and random numbers agree bit by bit in every call"
