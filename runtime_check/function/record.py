"""Real calls of a function, recorded in one run of the user's command."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..boot.torchlint_probe.settings import Settings
from ..launch import End, command
from ..overlay import plan
from .call import Call
from .version import FunctionError, Version


@dataclass(frozen=True)
class Recorded:
    """`seen` calls were made, of which `calls` were kept; `unrecorded` counts those that could not be, by reason."""

    calls: tuple[Call, ...]
    seen: int
    unrecorded: Mapping[str, int]


@dataclass(frozen=True)
class Run:
    """`root` is copied, and the command starts in `folder` below it."""

    words: Sequence[str]
    root: Path
    folder: Path = Path()
    steps: int = 10
    timeout: float = 600.0
    seed: int = 0
    python: str | None = None


def record(version: Version, run: Run, progress: Callable[[str], None] = lambda message: None) -> Recorded:
    """Run the command in a copy of the root for so many training steps, and keep some calls of the function.

    Raises FunctionError when the command fails or never calls it, CommandError and OverlayError when it cannot start.
    """
    root = run.root.resolve()
    if not version.file.is_relative_to(root):
        raise FunctionError(f"{version.file} is outside of {root}, which is what the command is run in: give --root")
    with tempfile.TemporaryDirectory(prefix="torchlint-function-") as name:
        work = Path(name).resolve()
        tree, results, logs = work / "copy" / root.name, work / "results", work / "logs"
        for folder in (results, logs):
            folder.mkdir()
        start = command(run.words, run.folder, run.timeout, run.python)
        plan(root, [], run.words).build(tree, {})
        settings = Settings(
            tree=str(tree),
            original=str(root),
            results=str(results),
            mode="record",
            steps=run.steps,
            seed=run.seed,
            function=[(_moved(file, root, tree), line, code) for file, line, code in version.chain],
        )
        progress(f"running {' '.join(run.words)}")
        outcome = start.run(settings, logs)
        calls = tuple(_call(file, number) for number, file in enumerate(sorted(results.glob("*.call")), 1))
    seen = outcome.run.calls if outcome.run else len(calls)
    unrecorded = outcome.run.unrecorded if outcome.run else {}
    if calls:
        return Recorded(calls, max(seen, len(calls)), unrecorded)
    if outcome.end is not End.DONE:
        raise FunctionError(
            f"the command did not get as far as calling {version.name}: {outcome.end.value}\n{outcome.log}"
        )
    if unrecorded:
        raise FunctionError(f"no call of {version.name} could be recorded: {next(iter(unrecorded))}")
    raise FunctionError(
        f"the command never called {version.name} in {run.steps} steps (code under torch.compile is not seen, "
        "and calls in other processes are not)"
    )


def _moved(file: str, root: Path, tree: Path) -> str:
    real = Path(file).resolve()
    return str(tree / real.relative_to(root)) if real.is_relative_to(root) else file


def _call(file: Path, number: int) -> Call:
    module, _, data = file.read_bytes().partition(b"\n")
    return Call(data, module.decode(), f"call {number}")
