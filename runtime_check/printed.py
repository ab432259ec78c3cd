"""Compares what two runs printed: the only result that every program has, and the one its user looks at."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(r"((?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf))")
_TIME_AFTER = re.compile(r"\s*(?:s|ms|us|µs|ns|sec|secs|seconds?|min|minutes?|h|it/s|\S*/s(?:ec)?)\b", re.IGNORECASE)
_TIME_BEFORE = re.compile(
    r"(?:time|elapsed|took|eta|speed|throughput|per[ _]sec\w*|fps"
    r"|\b(?:s|ms|us|µs|ns|secs?|seconds?)/\w+|\b\w+/s(?:ec)?)\W*$",
    re.IGNORECASE,
)
_PADDING = re.compile(r"[ \t]+")  # of columns, where numbers have other widths
_RELATIVE = 1e-5


@dataclass(frozen=True, slots=True)
class LineDifference:
    line: int
    before: str
    after: str


def first_difference(before: str, again: str, after: str) -> LineDifference | None:
    """The first line on which the rewritten program says something else. Lines, and numbers in them, on which the
    original does not agree with itself are passed over, and so are durations."""
    originals, repeats, changes = before.splitlines(), again.splitlines(), after.splitlines()
    if len(originals) != len(repeats):
        return None
    for number, (original, repeat) in enumerate(zip(originals, repeats, strict=True), 1):
        changed = changes[number - 1] if number <= len(changes) else ""
        if not _agree(original, repeat, changed):
            return LineDifference(number, original, changed)
    if len(changes) > len(originals):
        return LineDifference(len(originals) + 1, "", changes[len(originals)])
    return None


def _agree(original: str, repeat: str, changed: str) -> bool:
    ours, control, theirs = (_NUMBER.split(_PADDING.sub(" ", line)) for line in (original, repeat, changed))
    if ours[::2] != control[::2]:
        return True
    if ours[::2] != theirs[::2]:
        return False
    return all(
        ours[at] != control[at] or _is_duration(ours, at) or _close(ours[at], theirs[at])
        for at in range(1, len(ours), 2)
    )


def _is_duration(pieces: list[str], at: int) -> bool:
    return bool(_TIME_AFTER.match(pieces[at + 1]) or _TIME_BEFORE.search(pieces[at - 1]))


def _close(one: str, other: str) -> bool:
    if one == other:
        return True
    last_place = max(_last_place(one), _last_place(other))
    a, b = float(one), float(other)
    return abs(a - b) <= 1.5 * last_place or abs(a - b) <= _RELATIVE * max(abs(a), abs(b))


def _last_place(number: str) -> float:
    """What one unit of the last printed decimal is worth; whole numbers are exact."""
    mantissa, _, exponent = number.lower().partition("e")
    if "." not in mantissa:
        return 0.0
    return float(10 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))
