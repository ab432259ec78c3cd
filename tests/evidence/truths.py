"""Programs of which it is known what `verify` has to say, and whether what it says is true.

Three kinds: changes that leave a program as it is but for rounding, or do not; work that takes so many percent more or
less; and a program that is compared with itself.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchlint.runtime_check import Candidate, FixVerdict, Options, verify_fixes, verify_trees
from torchlint.runtime_check.equivalence import Sameness
from torchlint.runtime_check.plain import plain
from torchlint.runtime_check.stats import TOLERANCE, Comparison, Pace, compare
from torchlint.runtime_check.verdict import Timing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).with_name("planted")
FEW = Options(steps=12, warmup=2, blocks=0, timeout=120.0)
TIMED = Options(timeout=300.0)
SERIES = 4
SCRIPT = "train.py"
COMMAND = (sys.executable, SCRIPT)
ENDLESS = ("attention", "rows", "images", "sequence", "adversaries")
UNITS = ((200, 204), (200, 210), (200, 220), (200, 400), (204, 200), (210, 200), (220, 200), (400, 200))


@dataclass(frozen=True)
class Change:
    """`truth`: "equal" or "different"; `old` occurs once in the program."""

    truth: str
    name: str
    program: str
    old: str
    new: str


def changes() -> list[Change]:
    """Program by program."""
    document: dict[str, Any] = tomllib.loads((FOLDER / "changes.toml").read_text(encoding="utf-8"))
    found = [Change(truth, **item) for truth, items in document.items() for item in items]
    return sorted(found, key=lambda change: change.program)


def program(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def judged(name: str, planted: Sequence[Change]) -> list[dict[str, Any]]:
    """The record of each change of a program: what `verify` said of it by itself, and whether it holds."""
    text = program(name)
    candidates = {_candidate(text, change, at): change for at, change in enumerate(planted)}

    def rewrite(chosen: Collection[Candidate]) -> dict[Path, str]:
        """Of two changes of the same words the first is made."""
        changed = text
        for candidate in chosen:
            changed = changed.replace(candidates[candidate].old, candidates[candidate].new)
        return {Path(SCRIPT): changed}

    with _folder(text) as folder:
        verdict = verify_fixes(folder, list(candidates), rewrite, COMMAND, FEW)
    assert len(verdict.fixes) == len(planted), verdict
    return [_record(candidates[fix.fix], fix) for fix in verdict.fixes]


def _candidate(text: str, change: Change, at: int) -> Candidate:
    assert text.count(change.old) == 1, f"{change.name}: {change.old!r} occurs {text.count(change.old)} times"
    first = text[: text.index(change.old)].count("\n") + 1
    lines = range(first, first + change.old.strip("\n").count("\n") + 1)
    return Candidate(change.truth, SCRIPT, first, frozenset(lines), change.name, column=at)


def _record(change: Change, fix: FixVerdict) -> dict[str, Any]:
    word = said(fix)
    found = fix.equivalence
    return {
        "name": change.name,
        "program": change.program,
        "truth": change.truth,
        "said": word,
        "holds": word in (change.truth, "nothing"),
        "verdict": found.verdict.value if found else fix.status.value,
        "reason": found.reason if found else fix.reason,
        **({"loss_distance": found.loss_distance, "double_distance": found.double_distance} if found else {}),
    }


def said(fix: FixVerdict) -> str:
    """ "equal", "different", or "nothing" where the check leaves it open or did not come about."""
    found = fix.equivalence
    if found is None or found.verdict is Sameness.UNKNOWN:
        return "nothing"
    other_output = found.printed is not None or bool(found.files)
    return "different" if found.verdict is Sameness.DIFFERENT or other_output else "equal"


@contextmanager
def _folder(text: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        Path(name, SCRIPT).write_text(text, encoding="utf-8")
        yield Path(name)


def timed(before: str, after: str, options: Options) -> Timing:
    """What `verify` measures of a script and its changed text."""
    with _folder(before) as folder:
        verdict = verify_trees(folder, {Path(SCRIPT): after}, COMMAND, options)
    assert verdict.timing is not None, verdict
    return verdict.timing


def paced(before: int, after: int) -> dict[str, Any]:
    """The record of so many units of work per step that become so many."""
    text = program("work")
    timing = timed(*(text.replace("UNITS = 200", f"UNITS = {units}") for units in (before, after)), TIMED)
    pace = timing.comparison.pace
    ratio = after / before
    return {"truth": ratio, "said": pace.value, "holds": holds(pace, ratio), **_samples(timing)}


def holds(pace: Pace, ratio: float) -> bool:
    """Whether the verdict is true of a program that takes `ratio` times as long."""
    return {
        Pace.FASTER: ratio < 1,
        Pace.SLOWER: ratio > 1,
        Pace.SAME: 1 / (1 + TOLERANCE) <= ratio <= 1 + TOLERANCE,
        Pace.NOT_SLOWER: ratio <= 1 + TOLERANCE,
        Pace.INCONCLUSIVE: True,
    }[pace]


def against_itself(name: str) -> dict[str, Any]:
    """The record of a program compared with itself. Each of the three runs of a block can stand for the changed
    program, so that five blocks make three comparisons."""
    text = program(name).replace("range(16)", "range(10**9)")
    timing = timed(text, text + "\n", replace(TIMED, blocks=SERIES * TIMED.blocks))
    sides = timing.original, timing.control, timing.changed
    paces = [comparison.pace for comparison in comparisons(*sides)]
    return {
        "program": name,
        "said": [pace.value for pace in paces],
        "wrong": sum(pace in (Pace.FASTER, Pace.SLOWER) for pace in paces),
        **_samples(timing),
    }


def comparisons(*sides: Sequence[float]) -> Iterator[Comparison]:
    """Of three sides that are the same program: five blocks at a time, each side in turn as the changed one."""
    for start in range(0, len(sides[0]), TIMED.blocks):
        runs = [side[start : start + TIMED.blocks] for side in sides]
        for turn in range(3):
            yield compare(*runs[turn:], *runs[:turn])


def _samples(timing: Timing) -> dict[str, Any]:
    effect = timing.comparison.effect
    return {
        "metric": timing.metric,
        "ratio": [plain(round(bound, 5)) for bound in (effect.low, effect.ratio, effect.high)],
        "original": timing.original,
        "control": timing.control,
        "changed": timing.changed,
    }
