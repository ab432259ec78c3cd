"""The whole check: trees, runs, comparison, verdict."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from statistics import fmean, median

from .boot.torchlint_probe.settings import Settings
from .equivalence import Equivalence, Sameness, compare, needs_envelope
from .launch import Command, End, Outcome, command
from .overlay import Plan, plan
from .run import Run
from .schedule import Side, blocks
from .stats import compare as compare_times
from .verdict import Counters, Environment, Overall, Target, Timing, Verdict, judge, weigh

Progress = Callable[[str], None]
TIMED_SECONDS = 3.0
MOST_TIMED_STEPS = 2000
DISTURBANCES = (1.0, 2.0)  # units of the last place


@dataclass(frozen=True, slots=True)
class Window:
    """How many steps a timed run makes, and how many of them it leaves out."""

    steps: int
    warmup: int


@dataclass(frozen=True, slots=True)
class Options:
    """`folder` is where the command starts, below the root. No blocks: results and counters only, no timing."""

    steps: int = 30
    warmup: int = 5
    blocks: int = 5
    seed: int = 0
    timeout: float = 600.0
    python: str | None = None
    folder: Path = Path()
    keep: bool = False


class _FailedError(Exception):
    """A run that ends the check; what the verdict says about it."""

    def __init__(self, overall: Overall, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.overall, self.reason, self.log = overall, reason, log


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
    options = options or Options()
    original = original.resolve()
    contents = {_relative(original, path): _bytes(text) for path, text in changed.items()}
    counts = {_relative(original, path): dict(rules) for path, rules in (fixes or {}).items()}
    started, load = time.monotonic(), os.getloadavg()[0]
    target = Target(tuple(words), tuple(sorted(contents)), fixes=counts)
    with _workspace(options.keep, progress) as folder:
        check = _Check(
            plan(original, sorted(contents), words),
            contents,
            command(words, options.folder, options.timeout, options.python),
            folder,
            options,
            progress,
        )
        try:
            verdict = check.verdict(target, load)
        except _FailedError as failure:
            verdict = Verdict(failure.overall, (failure.reason,), target, 0.0, log=failure.log)
    return replace(verdict, seconds=round(time.monotonic() - started, 1))


class _Check:
    def __init__(
        self,
        plan: Plan,
        contents: Mapping[str, bytes],
        command: Command,
        folder: Path,
        options: Options,
        progress: Progress,
    ) -> None:
        self.plan = plan
        self.contents = contents
        self.command = command
        self.folder = folder
        self.options = options
        self.progress = progress
        self.boundary = "auto"
        self.warmup = options.warmup
        self.timed = Window(options.steps, options.warmup)

    def verdict(self, target: Target, load: float) -> Verdict:
        before, after, again = self._observations()
        equivalence = self._equivalence(before, after, again)
        counters = self._counters(before), self._counters(after)
        environment = self._environment(before, load)
        metric = _metric(environment, before, after)
        timing = self._timing(metric) if equivalence.verdict is not Sameness.DIFFERENT else None
        memory = weigh(*counters)
        overall, reasons = judge(equivalence, timing, memory, *counters, environment.on_gpu)
        unused = tuple(sorted(set(self.contents) - set(after.loaded)))
        if len(unused) == len(self.contents) and overall is Overall.ACCEPT:
            overall, reasons = Overall.REVIEW, ("the command loads none of the changed files",)
        return Verdict(
            overall,
            reasons,
            replace(target, unused=unused),
            seconds=0.0,
            environment=environment,
            equivalence=equivalence,
            before=counters[0],
            after=counters[1],
            memory=memory,
            timing=timing,
        )

    def _observations(self) -> tuple[Run, Run, Run]:
        """The first run also tells what a step is, and how many of them there are."""
        before = self._run(Side.ORIGINAL, "observe")
        self.boundary = before.boundary
        if before.boundary == "program":
            self.warmup = 0
        elif (fitting := max(1, len(before.steps) // 3)) < self.warmup:
            self.warmup = fitting
            before = self._run(Side.ORIGINAL, "observe")
        self.timed = self._window(before)
        after = self._run(Side.CHANGED, "observe")
        if escaped := sorted(set(self.contents) & set(after.escaped)):
            raise _FailedError(Overall.ERROR, f"the command imports {escaped[0]} from the original folder")
        return before, after, self._run(Side.CONTROL, "observe")

    def _window(self, run: Run) -> Window:
        """Short steps are timed in larger numbers: as many as take three seconds while they are observed, which makes
        them slower by a factor of one to five."""
        if run.why != "stop":
            return Window(self.options.steps, self.warmup)
        observed = median(step["wall"] for step in run.steps[self.warmup :])
        steps = min(max(self.options.steps, round(TIMED_SECONDS / observed)), MOST_TIMED_STEPS)
        return Window(steps, max(self.warmup, min(steps // 10, self.options.steps // 2)))

    def _equivalence(self, before: Run, after: Run, again: Run) -> Equivalence:
        disturbed = []
        if needs_envelope(before, again, after):
            disturbed = [self._run(Side.ORIGINAL, "observe", perturb=size) for size in DISTURBANCES]
        return compare(before, again, after, disturbed)

    def _timing(self, metric: str) -> Timing | None:
        if not self.options.blocks:
            return None
        seconds: dict[Side, list[float]] = {side: [] for side in Side}
        waits = []
        for number, block in enumerate(blocks(self.options.blocks, self.options.seed), 1):
            for side in block:
                run = self._run(side, "time", f" (block {number} of {self.options.blocks})")
                seconds[side].append(self._figure(run, metric))
                waits.append(self._figure(run, "data") / self._figure(run, "wall"))
        original, control, changed = (tuple(seconds[side]) for side in Side)
        comparison = compare_times(original, control, changed)
        wait = fmean(waits) if self.boundary == "optimizer" else None
        return Timing(metric, comparison, original, control, changed, wait, self.timed.steps - self.timed.warmup)

    def _figure(self, run: Run, metric: str) -> float:
        value = run.seconds_per_step(metric, self.timed.warmup)
        if value is None:
            raise _FailedError(Overall.ERROR, f"only {len(run.steps)} steps came back from a timed run")
        return value

    def _run(self, side: Side, mode: str, note: str = "", perturb: float = 0.0) -> Run:
        self.progress(f"{mode} {'rewritten' if side is Side.CHANGED else 'original'}{note}")
        tree, results, logs = (self.folder / name for name in ("copy", "results", "logs"))
        tree /= self.plan.root.name  # a program may know its folder by name
        for fresh in (results, logs):
            fresh.mkdir(exist_ok=True)
            for file in fresh.iterdir():
                file.unlink()
        window = self.timed if mode == "time" else Window(self.options.steps, self.warmup)
        self.plan.build(tree, self.contents if side is Side.CHANGED else {})
        settings = Settings(
            tree=str(tree),
            original=str(self.plan.root),
            results=str(results),
            mode=mode,
            boundary=self.boundary,
            steps=window.steps,
            warmup=window.warmup,
            seed=self.options.seed,
            perturb=perturb,
        )
        outcome = self.command.run(settings, logs)
        if overwritten := self.plan.overwritten():
            raise _FailedError(Overall.ERROR, f"the command wrote {overwritten[0]} in the original folder")
        return self._succeeded(outcome, side)

    def _succeeded(self, outcome: Outcome, side: Side) -> Run:
        if outcome.run is not None:
            return outcome.run
        what = {
            End.FAILED: f"exit code {outcome.code}",
            End.TIMED_OUT: f"killed after {self.options.timeout:g} s without finishing",
        }.get(outcome.end, "no measurement: it did not import torch, or runs Python with -I, -E or -S")
        if side is Side.CHANGED:
            raise _FailedError(Overall.REJECT, f"the rewritten program does not run: {what}", outcome.log)
        raise _FailedError(Overall.ERROR, f"baseline does not run: {what}", outcome.log)

    def _environment(self, run: Run, load: float) -> Environment:
        return Environment(
            date=date.today().isoformat(),
            device=run.device,
            device_name=run.device_name,
            driver=run.driver,
            torch=run.torch,
            cuda=run.cuda,
            threads=run.threads,
            load=load,
            boundary=run.boundary,
            steps=len(run.steps),
            warmup=self.warmup,
        )

    def _counters(self, run: Run) -> Counters:
        on_gpu = run.device == "cuda"
        alive, peak = ("device_bytes", "device_peak_bytes") if on_gpu else ("live_bytes", "peak_bytes")
        measured = max(1, len(run.steps) - self.warmup)
        lines = run.sync_lines if on_gpu else run.read_lines
        peaks = [step[peak] for step in run.steps[self.warmup :] if peak in step]
        return Counters(
            operations=run.mean("operations", self.warmup) or 0.0,
            kernels=run.mean("kernels", self.warmup) or 0.0,
            syncs=run.mean("syncs" if on_gpu else "reads", self.warmup) or 0.0,
            peak_bytes=max(peaks, default=0.0),
            peak_bytes_typical=median(peaks) if peaks else 0.0,
            bytes_kept_per_step=run.growth(alive, self.warmup),
            graph_nodes_kept_per_step=run.growth("graph_nodes", self.warmup),
            sync_lines={line: count / measured for line, count in sorted(lines.items())},
        )


def _metric(environment: Environment, before: Run, after: Run) -> str:
    """Chosen before anything is timed. On a crowded machine the processor time of the program is steadier than the
    clock on the wall, but it says nothing where part of the work lies in other processes."""
    if environment.on_gpu:
        return "device"
    crowded = environment.load > 0.5 * (os.cpu_count() or 1)
    return "cpu" if crowded and not before.helpers and not after.helpers else "wall"


@contextmanager
def _workspace(keep: bool, progress: Progress) -> Iterator[Path]:
    if keep:
        folder = Path(tempfile.mkdtemp(prefix="torchlint-verify-")).resolve()
        progress(f"trees and logs stay in {folder}")
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="torchlint-verify-") as name:
        yield Path(name).resolve()


def _relative(original: Path, path: Path) -> str:
    return (original / path).resolve().relative_to(original).as_posix()


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
