"""Many files: gate and cache in this process, the rest spread over worker processes. Results come in the order of the
files, whatever the number of workers. Writing is left to the caller.

What lints and fixes is imported once there is a file that the cache does not know.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.config import Settings
from torchlint.diagnostics import INTERNAL_ERROR, UNREADABLE_FILE, diagnose
from torchlint.files.discovery import Target, discover
from torchlint.files.project_files import ProjectFiles
from torchlint.filters.suppression import may_suppress
from torchlint.running.cache import Cache
from torchlint.running.machine import processors
from torchlint.running.task import Result, Surroundings, Task
from torchlint.settings_file import Configuration
from torchlint.source import is_worth_linting

if TYPE_CHECKING:
    from torchlint.fixing.passes import Fixed

_BYTES_WORTH_A_WORKER = 150_000
_MOST_BYTES_OF_A_RUN = 1_000_000  # some seconds, until which nobody is told of progress
_GARBAGE_THRESHOLD = (4_000_000, 10, 100)


@dataclass(frozen=True, slots=True)
class Options:
    """`suppressed`: what comments suppress is wanted too, so a file with such a comment is never taken for clean.
    `cluster` is the address of a Dask scheduler whose workers see the same files."""

    jobs: int = 0  # 0: one for each processor
    fix: bool = False
    cache_folder: Path | None = None
    suppressed: bool = False
    cluster: str | None = None


def run(
    targets: Sequence[Target], options: Options, progress: Callable[[int, int], None] = lambda done, all: None
) -> list[Result]:
    """Lint, and where asked fix in memory, every target. Results come in the order of the targets."""
    cache = Cache(options.cache_folder)
    files, surroundings = ProjectFiles(), Surroundings()
    results: dict[Path, Result] = {}
    worth: dict[Path, Task] = {}
    tasks: list[Task] = []
    digests: dict[Path, bytes] = {}
    for target in targets:
        try:
            data = target.path.read_bytes() if target.data is None else target.data
        except OSError as error:
            message = f"the file cannot be read: {error.strerror}"
            results[target.path] = Result(target.path, (diagnose(UNREADABLE_FILE, message, target.path),))
            continue
        if not is_worth_linting(data):
            continue
        around = files.fingerprint(os.path.abspath(target.path)) if options.cache_folder is not None else b""
        digest = cache.digest(data, target.path, target.settings, around)
        fix = target.settings.unsafe_fixes if options.fix else None
        worth[target.path] = Task(target.path, data, target.settings, fix, surroundings)
        shown = options.suppressed and may_suppress(data)
        if shown or not cache.is_clean(digest):
            digests[target.path] = digest if _is_whole(target.settings) else b""
            tasks.append(worth[target.path])
    done = len(targets) - len(tasks)
    for result in _process_all(tasks, options):
        results[result.path] = result
        if digests[result.path] and not result.findings and result.fixed is None:
            cache.add_clean(digests[result.path])
        done += 1
        progress(done, len(targets))
    cache.save()
    if options.fix:
        from torchlint.fixing.across_files import settled

        process_all = partial(_process_all, options=options)
        results = settled(results, worth, {target.path: target for target in targets}, process_all)
    named = {os.path.abspath(target.path): target.path for target in targets}
    return [within(results[target.path], named) for target in targets if target.path in results]


def within(result: Result, named: Mapping[str, Path]) -> Result:
    """The result without the fixes that change files other than the `named` ones: absolute paths, and how they were
    named."""
    if not any(finding.fix is not None and finding.fix.elsewhere for finding in result.findings):
        return result
    from torchlint.fixing import across_files

    return replace(result, findings=tuple(across_files.within(finding, named) for finding in result.findings))


def _is_whole(settings: Settings) -> bool:
    """Whether a file without findings has none, and not only none that count."""
    return settings.scope is None


def _process_all(tasks: Sequence[Task], options: Options) -> Iterator[Result]:
    if not tasks:
        return
    from torchlint.running.work import process

    if options.cluster is not None:
        from torchlint.running import cluster

        yield from cluster.spread(options.cluster, partial(_process_in, os.getcwd()), tasks)
        return
    size = sum(len(task.data) for task in tasks)
    workers = min(options.jobs or processors(), len(tasks), 1 + size // _BYTES_WORTH_A_WORKER)
    if workers < 2:
        with _seldom_collected():
            yield from map(process, tasks)
        return
    from torchlint.running.workers import WorkerDiedError, spread

    unfinished = {task.path: task for task in tasks}
    try:
        for results in spread(partial(_each, process), _runs(tasks, workers), workers, _prepare_worker):
            for result in results:
                del unfinished[result.path]
                yield result
    except WorkerDiedError:
        for task in [task for task in tasks if task.path in unfinished]:
            yield _process_alone(task)


def _runs(tasks: Sequence[Task], workers: int) -> list[list[Task]]:
    """The tasks in runs, each for one process: files side by side, which import each other, so that what one has read
    for a file serves the next. Each run takes a share of what is left, so that the last ones end at about one time."""
    left = sum(len(task.data) for task in tasks)
    runs: list[list[Task]] = []
    size = 0
    for task in sorted(tasks, key=lambda task: os.path.abspath(task.path)):
        if size <= 0:
            runs.append([])
            size = min(left // (2 * workers), _MOST_BYTES_OF_A_RUN)
        runs[-1].append(task)
        size -= len(task.data)
        left -= len(task.data)
    return runs


def _each(process: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    return [process(task) for task in tasks]


def _process_in(folder: str, task: Task) -> Result:
    """On another machine, or in another process: paths are relative to the folder where the run began."""
    from torchlint.running.work import process

    os.chdir(folder)
    return process(task)


def _process_alone(task: Task) -> Result:
    """One file in a process of its own, after some file of the pool took its process down."""
    from torchlint.running.work import process
    from torchlint.running.workers import WorkerDiedError, spread

    try:
        return next(spread(process, [task], 1, _prepare_worker))
    except WorkerDiedError:
        message = "the process that linted the file died: out of memory, or nested too deeply for the parser"
        return Result(task.path, (diagnose(INTERNAL_ERROR, message, task.path),))


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """A syntax tree is many objects and hardly any garbage: looking for it often costs a quarter of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*_GARBAGE_THRESHOLD)
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # what is there counts as old now: else all of it would be searched at once
        gc.set_threshold(*before)


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(*_GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # else all that the process has read is searched for garbage once more at its end


def fix_tree(
    paths: Sequence[Path], configuration: Configuration | None = None, unsafe: bool = True
) -> dict[Path, Fixed]:
    """The fixed text of every file below `paths` that fixes change, by the path as discovered. Nothing is written.

    Raises ConfigError, and FileNotFoundError for a path that does not exist.
    """
    found = discover(paths, configuration or Configuration())
    if found.missing:
        raise FileNotFoundError(f"{found.missing[0]}: no such file or folder")
    targets = [Target(t.path, replace(t.settings, unsafe_fixes=unsafe)) for t in found.targets]
    results = run(targets, Options(fix=True))
    return {result.path: result.fixed for result in results if result.fixed is not None}
