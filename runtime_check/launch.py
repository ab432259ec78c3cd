"""Runs the user's command in a copy of the tree, in its own process group, and brings back what the probe wrote."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from .boot.torchlint_probe.settings import Settings
from .run import Run, read_results

BOOT = Path(__file__).with_name("boot")
GRACE = 15.0  # seconds that a program may take to unwind after its last step
_LOG_TAIL = 30
_PRINTED_LIMIT = 4 << 20


class End(str, Enum):
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    UNMEASURED = "unmeasured"


class CommandError(Exception):
    """The command cannot be started."""


@dataclass(frozen=True, slots=True)
class Outcome:
    end: End
    code: int
    log: str
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """`words` as the user gave them, `folder` where they start, relative to the tree."""

    words: tuple[str, ...]
    folder: Path = Path()
    timeout: float = 600.0

    def located(self, original: Path, tree: Path) -> list[str]:
        """Absolute paths into the original folder would run the original; they are moved to the tree."""
        program, *arguments = self.words
        copied = Path(_moved(program, original, tree))
        program = str(copied) if copied.is_file() and copied == copied.resolve() else program
        return [program, *(_moved(word, original, tree) for word in arguments)]

    def run(self, settings: Settings, logs: Path) -> Outcome:
        """`settings.results` and `logs` must exist and be empty. KeyboardInterrupt leaves no process behind."""
        with self.started(settings, logs) as process:
            in_time = ended(process, settings, time.monotonic() + self.timeout)
        return outcome(process, in_time, settings, logs)

    @contextlib.contextmanager
    def started(self, settings: Settings, logs: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A process whose output goes to `logs`, and which has ended, with all that it started, when the context does.

        Raises CommandError.
        """
        tree = Path(settings.tree)
        words = self.located(Path(settings.original), tree)
        with (logs / "stdout").open("wb") as out, (logs / "stderr").open("wb") as err:
            try:
                process = subprocess.Popen(
                    words,
                    cwd=tree / self.folder,
                    env=environment(settings, os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except OSError as error:
                raise CommandError(f"cannot run {words[0]}: {error.strerror}") from error
            try:
                yield process
            finally:
                end_group(process)


def command(words: Sequence[str], folder: Path, timeout: float, python: str | None = None) -> Command:
    """With `python`, that interpreter instead of the first word, which must name one."""
    if not words:
        raise CommandError("no command: write it after --, as in `torchlint verify -- python train.py`")
    program, *arguments = words
    if python is not None:
        if not Path(program).name.startswith("python"):
            raise CommandError(f"--python replaces the interpreter, but the command starts with {program}")
        program = python
    if shutil.which(program) is None:
        raise CommandError(f"{program} is not a program that can be run")
    return Command((program, *arguments), folder, timeout)


def environment(settings: Settings, inherited: Mapping[str, str]) -> dict[str, str]:
    path = [_moved(entry, Path(settings.original), Path(settings.tree)) for entry in _path_entries(inherited)]
    return {
        **inherited,
        **settings.to_environment(),
        "PYTHONPATH": os.pathsep.join([str(BOOT), *path]),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",  # two versions of a file may share path, size and time
        "CUBLAS_WORKSPACE_CONFIG": inherited.get("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
        "GIT_OPTIONAL_LOCKS": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(Path(settings.results).with_name("inductor")),
        "MPLBACKEND": "Agg",
        "WANDB_MODE": "disabled",
    }


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Whatever the command started and left: asked first, then killed."""
    for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    process.wait()


def ended(process: subprocess.Popen[bytes], settings: Settings, deadline: float) -> bool:
    """False when time ran out. A program that was told to stop and lingers has served its purpose."""
    told_at: float | None = None
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            return True
        if told_at is None and _was_told_to_stop(settings):
            told_at = time.monotonic()
        if told_at is not None and time.monotonic() - told_at > GRACE:
            return True
    return False


def _was_told_to_stop(settings: Settings) -> bool:
    if not any(Path(settings.results).glob("*.json")):
        return False
    run = read_results(Path(settings.results))
    return run is not None and run.why == "stop" and (settings.boundary, run.boundary) != ("auto", "loader")


def outcome(process: subprocess.Popen[bytes], in_time: bool, settings: Settings, logs: Path) -> Outcome:
    """Of a process that has ended."""
    code, log = process.returncode, _tail(logs / "stdout") + _tail(logs / "stderr")
    run = read_results(Path(settings.results))
    stopped = run is not None and run.why == "stop"
    if not in_time and not stopped:
        return Outcome(End.TIMED_OUT, code, log)
    if code != 0 and not stopped:
        return Outcome(End.FAILED, code, log)
    if run is None:
        return Outcome(End.UNMEASURED, code, log)
    return Outcome(End.DONE, code, log, replace(run, printed=_read(logs / "stdout")))


def _moved(word: str, original: Path, tree: Path) -> str:
    """`/project/train.py` and `--data=/project/data` -> the same below the tree."""
    option, equals, value = word.rpartition("=")
    path = Path(value)
    if not path.is_absolute():
        return word
    try:
        inside = path.resolve().relative_to(original)
    except ValueError:
        return word
    return f"{option}{equals}{tree / inside}"


def _path_entries(inherited: Mapping[str, str]) -> list[str]:
    return [entry for entry in inherited.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_PRINTED_LIMIT).decode(errors="replace")


def _tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    return "".join(lines[-_LOG_TAIL:])
