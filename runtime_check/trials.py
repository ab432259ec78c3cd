"""Runs of one command: in which tree, under which settings, for how many steps; and what counts as a failed run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from .boot.torchlint_probe.settings import Settings
from .launch import Command, End, Outcome, command
from .lockstep import run_in_turn
from .overlay import Plan, plan, stamps, written
from .run import Run
from .schedule import Side
from .verdict import Overall

Progress = Callable[[str], None]
Contents = Mapping[str, bytes]
ORIGINAL: Contents = {}

TIMED_SECONDS = 3.0
TURN_SECONDS = 0.05
MOST_TIMED_STEPS = 2000


@dataclass(frozen=True, slots=True)
class Options:
    """`folder` is where the command starts, below the root. No blocks: results and counters only, no timing.
    `programs`, by their path from the root, stand in the copies in place of the user's files: the code of a notebook.
    """

    steps: int = 30
    warmup: int = 5
    blocks: int = 5
    seed: int = 0
    timeout: float = 600.0
    python: str | None = None
    folder: Path = Path()
    keep: bool = False
    programs: Contents = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """How many steps a timed run makes, and how many of them it leaves out."""

    steps: int
    warmup: int


class FailedError(Exception):
    """A run that brought nothing to compare; what the verdict says about it."""

    def __init__(self, overall: Overall, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.overall, self.reason, self.log = overall, reason, log


@contextmanager
def prepared(
    original: Path, changed: Sequence[str], words: Sequence[str], options: Options, progress: Progress
) -> Iterator[Trials]:
    """In a folder that is gone afterwards, unless it is to be kept. `changed` are the files that will change.

    Raises CommandError and OverlayError.
    """
    with _workspace(options.keep, progress) as folder:
        started = command(words, options.folder, options.timeout, options.python)
        yield Trials(plan(original, [*changed, *options.programs], words), started, folder, options, progress)


@contextmanager
def _workspace(keep: bool, progress: Progress) -> Iterator[Path]:
    if keep:
        folder = Path(tempfile.mkdtemp(prefix="torchlint-run-")).resolve()
        progress(f"trees and logs stay in {folder}")
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="torchlint-run-") as name:
        yield Path(name).resolve()


class Trials:
    """The first observed run also tells what a step is, and how many of them there are."""

    def __init__(self, plan: Plan, command: Command, folder: Path, options: Options, progress: Progress) -> None:
        self.plan = plan
        self.command = command
        self.folder = folder
        self.options = options
        self.progress = progress
        self.boundary = "auto"
        self.warmup = options.warmup
        self.timed = Window(options.steps, options.warmup)
        self.turn = 1

    def first(self) -> Run:
        run = self.observe(ORIGINAL, "original")
        self.boundary = run.boundary
        if run.boundary == "program":
            self.warmup = 0
        elif (fitting := max(1, len(run.steps) // 3)) < self.warmup:
            self.warmup = fitting
            run = self.observe(ORIGINAL, "original")
        self.timed = self._window(run)
        return run

    def observe(self, contents: Contents, what: str, *, perturb: float = 0.0, double: bool = False) -> Run:
        window = Window(self.options.steps, self.warmup)
        return self._run(contents, what, "observe", window, perturb=perturb, double=double)

    def time(self, contents: Contents, what: str) -> Run:
        return self._run(contents, what, "time", self.timed)

    def time_together(self, each: Mapping[Side, Contents], what: str, seed: int) -> dict[Side, Run]:
        """One run of each, alive together: one makes a few steps while the others wait."""
        self.progress(f"time {what}")
        folders = {side: self.folder / side.name.lower() for side in each}
        settings = [
            self._prepared(folders[side], contents, "time", self.timed, turn=self.turn)
            for side, contents in each.items()
        ]
        outcomes = run_in_turn(self.command, settings, [folder / "logs" for folder in folders.values()], seed)
        return {
            side: self._succeeded(outcome, is_original=not contents)
            for (side, contents), outcome in zip(each.items(), outcomes, strict=True)
        }

    def profile(self, window: Window, timed: int) -> Run:
        """The original: so many steps are timed after the warm-up, the rest are counted."""
        return self._run(ORIGINAL, "the command", "profile", window, timed=timed)

    def _window(self, run: Run) -> Window:
        """Short steps are timed in larger numbers: as many as take three seconds while they are observed, which makes
        them slower by a factor of one to five."""
        if run.why != "stop":
            return Window(self.options.steps, self.warmup)
        observed = median(step["wall"] for step in run.steps[self.warmup :])
        steps = min(max(self.options.steps, round(TIMED_SECONDS / observed)), MOST_TIMED_STEPS)
        self.turn = max(1, round(TURN_SECONDS / observed))
        return Window(steps, max(self.warmup, min(steps // 10, self.options.steps // 2)))

    def _run(self, contents: Contents, what: str, mode: str, window: Window, **special: Any) -> Run:
        self.progress(f"{mode} {what}")
        settings = self._prepared(self.folder, contents, mode, window, **special)
        before = stamps(Path(settings.tree)) if mode == "observe" else {}
        outcome = self.command.run(settings, self.folder / "logs")
        run = self._succeeded(outcome, is_original=not contents)
        return replace(run, written=written(Path(settings.tree), before)) if mode == "observe" else run

    def _prepared(self, folder: Path, contents: Contents, mode: str, window: Window, **special: Any) -> Settings:
        """A fresh copy of the project in the folder, beside empty folders of results and of logs."""
        tree, results, logs = (folder / name for name in ("copy", "results", "logs"))
        tree /= self.plan.root.name  # a program may know its folder by name
        for fresh in (results, logs):
            fresh.mkdir(parents=True, exist_ok=True)
            for file in fresh.iterdir():
                file.unlink()
        self.plan.build(tree, {**self.options.programs, **contents})
        return Settings(
            tree=str(tree),
            original=str(self.plan.root),
            results=str(results),
            mode=mode,
            boundary=self.boundary,
            steps=window.steps,
            warmup=window.warmup,
            seed=self.options.seed,
            **special,
        )

    def _succeeded(self, outcome: Outcome, is_original: bool) -> Run:
        if overwritten := self.plan.overwritten():
            raise FailedError(Overall.ERROR, f"the command wrote {overwritten[0]} in the original folder")
        if outcome.run is not None:
            return outcome.run
        what = {
            End.FAILED: f"exit code {outcome.code}",
            End.TIMED_OUT: f"killed after {self.options.timeout:g} s without finishing",
        }.get(outcome.end, "no measurement: it did not import torch, or runs Python with -I, -E or -S")
        if is_original:
            raise FailedError(Overall.ERROR, f"baseline does not run: {what}", outcome.log)
        raise FailedError(Overall.REJECT, f"the rewritten program does not run: {what}", outcome.log)
