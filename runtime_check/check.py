"""The whole check: trees, runs, comparison, verdict; of all fixes as one, or of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from .equivalence import Equivalence, Sameness, compare, is_identical, is_open, loses_digits
from .fix_by_fix import FixByFix, by_file
from .run import Run
from .timing import timing
from .trials import ORIGINAL, Contents, FailedError, Options, Progress, Trials, prepared
from .verdict import (
    Candidate,
    Counters,
    Environment,
    Memory,
    Overall,
    Target,
    Timing,
    Verdict,
    judge,
    weigh,
)

DISTURBANCES = (1.0, 2.0)  # units of the last place


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one observed run of a rewritten program shows, beside the original's."""

    run: Run
    equivalence: Equivalence
    counters: Counters
    memory: Memory


def verify_trees(
    original: Path,
    changed: Mapping[Path, str | bytes],
    words: Sequence[str],
    options: Options | None = None,
    *,
    fixes: Mapping[Path, Mapping[str, int]] | None = None,
    progress: Progress = lambda message: None,
) -> Verdict:
    """Run `words` in copies of `original`, with and without the new text of the files in `changed`, and compare.

    Paths are absolute or relative to `original`; `fixes` says which rules changed each, for the report.

    Raises CommandError and OverlayError before anything has run; what happens later is in the verdict.
    """
    original = original.resolve()
    contents = _contents(original, changed)
    counts = {_relative(original, path): dict(rules) for path, rules in (fixes or {}).items()}
    target = Target(tuple(words), tuple(sorted(contents)), fixes=counts)

    def verdict(check: Check) -> Verdict:
        return check.verdict(contents, target)

    return _checked(original, contents, target, options or Options(), progress, verdict)


def verify_fixes(
    original: Path,
    candidates: Sequence[Candidate],
    rewrite: Callable[[Collection[Candidate]], Mapping[Path, str | bytes]],
    words: Sequence[str],
    options: Options | None = None,
    *,
    progress: Progress = lambda message: None,
) -> Verdict:
    """Run `words` with each fix alone, and with all those together that proved harmless. `rewrite` gives the new text
    of the files that some of the candidates change.

    The verdict is that of the fixes that were kept; `Verdict.fixes` says of each what became of it. Raises as
    `verify_trees` does.
    """
    original = original.resolve()
    every = _contents(original, rewrite(candidates))
    target = Target(tuple(words), tuple(sorted(every)), fixes=by_file(candidates))

    def verdict(check: Check) -> Verdict:
        def contents(chosen: Collection[Candidate]) -> Contents:
            return _contents(original, rewrite(chosen))

        return FixByFix(check, candidates, contents, target).verdict()

    return _checked(original, every, target, options or Options(), progress, verdict)


def _checked(
    original: Path,
    contents: Contents,
    target: Target,
    options: Options,
    progress: Progress,
    verdict: Callable[[Check], Verdict],
) -> Verdict:
    started, load = time.monotonic(), os.getloadavg()[0]
    with prepared(original, sorted(contents), target.command, options, progress) as trials:
        try:
            found = verdict(Check(trials, load))
        except FailedError as failure:
            found = Verdict(failure.overall, (failure.reason,), target, 0.0, log=failure.log)
    return replace(found, seconds=round(time.monotonic() - started, 1))


class Check:
    """The original's own runs, made once and when needed, and what a rewrite shows beside them."""

    def __init__(self, trials: Trials, load: float) -> None:
        self.trials = trials
        self.load = load
        self._known: dict[frozenset[tuple[str, bytes]], Evidence] = {}

    @cached_property
    def before(self) -> Run:
        return self.trials.first()

    @cached_property
    def again(self) -> Run:
        _ = self.before  # says what a step is
        return self.trials.observe(ORIGINAL, "original again")

    @cached_property
    def counters(self) -> Counters:
        return self._counters(self.before)

    @cached_property
    def environment(self) -> Environment:
        return Environment.of(self.before, self.trials.warmup, self.load)

    @cached_property
    def _disturbed(self) -> list[Run]:
        what = "original, disturbed in the last place"
        return [self.trials.observe(ORIGINAL, what, perturb=size) for size in DISTURBANCES]

    @cached_property
    def _double(self) -> Run | None:
        """None where the original fails in float64, or is not the same twice."""
        if not is_identical(self.before, self.again):
            return None
        try:
            return self.trials.observe(ORIGINAL, "original in float64", double=True)
        except FailedError:
            return None

    def evidence(self, contents: Contents, what: str) -> Evidence:
        """Raises FailedError where the rewritten program does not run."""
        key = frozenset(contents.items())
        if key not in self._known:
            self._known[key] = self._evidence(contents, what)
        return self._known[key]

    def _evidence(self, contents: Contents, what: str) -> Evidence:
        before, again = self.before, self.again
        after = self.trials.observe(contents, what)
        if escaped := sorted(set(contents) & set(after.escaped)):
            raise FailedError(Overall.ERROR, f"the command imports {escaped[0]} from the original folder")
        counters = self._counters(after)
        return Evidence(
            after, self._equivalence(contents, what, before, again, after), counters, weigh(self.counters, counters)
        )

    def _equivalence(self, contents: Contents, what: str, before: Run, again: Run, after: Run) -> Equivalence:
        if not is_open(before, again, after):
            return compare(before, again, after)
        if self._double is not None:
            try:
                double = self._double, self.trials.observe(contents, f"{what} in float64", double=True)
                disturbed = self._disturbed if loses_digits(before, after) else ()
                return compare(before, again, after, disturbed, double)
            except FailedError:
                pass
        return compare(before, again, after, self._disturbed)

    def verdict(self, contents: Contents, target: Target) -> Verdict:
        evidence = self.evidence(contents, "rewritten")
        is_different = evidence.equivalence.verdict is Sameness.DIFFERENT
        timing = None if is_different else self.timing(contents, "rewritten", evidence)
        return self.judged(contents, target, evidence, timing)

    def judged(self, contents: Contents, target: Target, evidence: Evidence, timing: Timing | None) -> Verdict:
        overall, reasons = judge(
            evidence.equivalence, timing, evidence.memory, self.counters, evidence.counters, self.environment.on_gpu
        )
        unused = tuple(sorted(set(contents) - set(evidence.run.loaded)))
        if len(unused) == len(contents) and overall is Overall.ACCEPT:
            overall, reasons = Overall.REVIEW, ("the command loads none of the changed files",)
        return Verdict(
            overall,
            reasons,
            replace(target, unused=unused),
            seconds=0.0,
            environment=self.environment,
            equivalence=evidence.equivalence,
            before=self.counters,
            after=evidence.counters,
            memory=evidence.memory,
            timing=timing,
        )

    def timing(self, contents: Contents, what: str, evidence: Evidence) -> Timing | None:
        if not self.trials.options.blocks:
            return None
        return timing(self.trials, contents, what, self.environment, self.before, evidence.run)

    def _counters(self, run: Run) -> Counters:
        on_gpu = run.device == "cuda"
        alive, peak = ("device_bytes", "device_peak_bytes") if on_gpu else ("live_bytes", "peak_bytes")
        measured = max(1, len(run.steps) - self.trials.warmup)
        lines = run.sync_lines if on_gpu else run.read_lines
        peaks = [step[peak] for step in run.steps[self.trials.warmup :] if peak in step]
        return Counters(
            operations=run.mean("operations", self.trials.warmup) or 0.0,
            kernels=run.mean("kernels", self.trials.warmup) or 0.0,
            syncs=run.mean("syncs" if on_gpu else "reads", self.trials.warmup) or 0.0,
            peak_bytes=max(peaks, default=0.0),
            peak_bytes_typical=median(peaks) if peaks else 0.0,
            bytes_kept_per_step=run.growth(alive, self.trials.warmup),
            graph_nodes_kept_per_step=run.growth("graph_nodes", self.trials.warmup),
            alive_by_step=tuple(step.get(alive, 0.0) for step in run.steps),
            peak_by_step=tuple(step.get(peak, 0.0) for step in run.steps),
            sync_lines={line: count / measured for line, count in sorted(lines.items())},
        )


def _contents(original: Path, changed: Mapping[Path, str | bytes]) -> dict[str, bytes]:
    return {_relative(original, path): _bytes(text) for path, text in changed.items()}


def _relative(original: Path, path: Path) -> str:
    return (original / path).resolve().relative_to(original).as_posix()


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
