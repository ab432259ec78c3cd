"""Many files: gate and cache in this process, the rest spread over worker processes. Results come in the order of the
files, whatever the number of workers. Writing is left to the caller.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from torchlint.cache import Cache
from torchlint.config import Settings
from torchlint.diagnostics import INTERNAL_ERROR, SYNTAX_ERROR, UNREADABLE_FILE
from torchlint.discovery import Target, discover
from torchlint.engine import diagnose, examine, is_worth_linting
from torchlint.finding import Finding
from torchlint.fixing import Fixed, changes, fix_source, fix_together, located
from torchlint.project_files import ProjectFiles
from torchlint.settings_file import Configuration, load_plugins
from torchlint.source import Source, UnreadableSourceError
from torchlint.suppression import may_suppress

if TYPE_CHECKING:
    from torchlint.semantics.project import Project

_BYTES_WORTH_A_WORKER = 150_000
_GARBAGE_THRESHOLD = (100_000, 50, 100)


@dataclass(frozen=True, slots=True)
class Task:
    """One file's bytes. `fix` is None to lint only, else says whether unsafe fixes count. Tasks of one `run` share what
    was read of the files around theirs."""

    path: Path
    data: bytes
    settings: Settings
    fix: bool | None = None
    run: str = field(default_factory=lambda: uuid4().hex)


@lru_cache(maxsize=1)
def _project(run: str) -> Project:
    """What one process has read of the project in one run."""
    from torchlint.semantics.project import Project

    return Project()


@dataclass(frozen=True, slots=True)
class Result:
    """`findings` are those left in `source`, which is None where there is nothing to show. `fixed` is None where no fix
    was wanted or none applied. `suppressed` do not count. `seconds` as in `Examined`, of a run that fixes nothing."""

    path: Path
    findings: tuple[Finding, ...] = ()
    source: Source | None = None
    fixed: Fixed | None = None
    suppressed: tuple[Finding, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)


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
    files, name = ProjectFiles(), uuid4().hex
    results: dict[Path, Result] = {}
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
        shown = options.suppressed and may_suppress(data)
        if shown or not cache.is_clean(digest):
            digests[target.path] = digest if _is_whole(target.settings) else b""
            fix = target.settings.unsafe_fixes if options.fix else None
            tasks.append(Task(target.path, data, target.settings, fix, name))
    done = len(targets) - len(tasks)
    for result in _process_all(tasks, options):
        results[result.path] = result
        if digests[result.path] and not result.findings and result.fixed is None:
            cache.add_clean(digests[result.path])
        done += 1
        progress(done, len(targets))
    cache.save()
    if options.fix:
        results |= _across_files(results, {target.path: target for target in targets})
    named = {os.path.abspath(target.path): target.path for target in targets}
    return [within(results[target.path], named) for target in targets if target.path in results]


def within(result: Result, named: Mapping[str, Path]) -> Result:
    """The result without the fixes that change files other than the `named` ones: absolute paths, and how they were
    named."""
    if not any(finding.fix is not None and finding.fix.elsewhere for finding in result.findings):
        return result
    return replace(result, findings=tuple(_within(finding, named) for finding in result.findings))


def _within(finding: Finding, named: Mapping[str, Path]) -> Finding:
    found = located(finding, named)
    outside = [path for path in changes(found) if os.path.abspath(path) not in named]
    if not outside:
        return found
    here = Path.cwd()
    files = " and ".join(str(path.relative_to(here) if path.is_relative_to(here) else path) for path in outside)
    return replace(finding, fix=None, no_fix=f"it would change {files}, which is not among the files to check")


def _across_files(results: Mapping[Path, Result], targets: Mapping[Path, Target]) -> dict[Path, Result]:
    """The results of files that fixes change together, made anew in this process, which has them all."""
    groups = _groups(results, {os.path.abspath(path): path for path in targets})
    settings = {path: target.settings for path, target in targets.items()}
    found: dict[Path, Result] = {}
    for group in groups:
        first = min(group)
        try:
            from torchlint.semantics.project import Project

            project = Project()
            fixed = fix_together([_source(targets[path]) for path in sorted(group)], settings, project)
        except (OSError, UnreadableSourceError):
            continue
        except Exception as error:
            crash = diagnose(INTERNAL_ERROR, f"the engine crashed: {type(error).__name__}: {error}", first)
            known = results.get(first, Result(first))
            found[first] = replace(known, findings=(crash, *known.findings))
            continue
        found |= {path: fixed_result(file, settings[path], project) for path, file in fixed.items()}
    return found


def _source(target: Target) -> Source:
    """Raises OSError and UnreadableSourceError."""
    return Source.read(target.path) if target.data is None else Source.from_bytes(target.data, target.path)


def _groups(results: Mapping[Path, Result], named: Mapping[str, Path]) -> list[set[Path]]:
    """Files that have to change together, for that some fix changes several of them."""
    groups: list[set[Path]] = []
    for result in results.values():
        for finding in result.findings:
            files = {result.path, *changes(located(finding, named))}
            if len(files) > 1 and files <= set(named.values()):
                joined = files.union(*(group for group in groups if group & files))
                groups = [*(group for group in groups if not group & files), joined]
    return groups


def _is_whole(settings: Settings) -> bool:
    """Whether a file without findings has none, and not only none that count."""
    return settings.scope is None


def process(task: Task) -> Result:
    """Lint or fix one file. Whatever goes wrong is a finding."""
    load_plugins(task.settings.plugins)
    try:
        source = Source.from_bytes(task.data, task.path)
    except UnreadableSourceError as error:
        return Result(task.path, (diagnose(SYNTAX_ERROR, f"the file {error}", task.path),))
    try:
        if task.fix is None:
            found = examine(source, task.settings, project=_project(task.run))
            shown = source if found.findings or found.suppressed else None
            return Result(task.path, tuple(found.findings), shown, None, tuple(found.suppressed), found.seconds)
        fixed = fix_source(source, task.settings, task.fix, project=_project(task.run))
        return fixed_result(fixed, task.settings, _project(task.run))
    except Exception as error:
        message = f"the engine crashed: {type(error).__name__}: {error}"
        return Result(task.path, (diagnose(INTERNAL_ERROR, message, task.path),))


def fixed_result(fixed: Fixed, settings: Settings, project: Project) -> Result:
    suppressed: list[Finding] = []
    if settings.scope is not None or may_suppress(fixed.source.data):
        suppressed = examine(fixed.source, settings, project=project).suppressed
    shown = fixed.source if fixed.remaining or suppressed or fixed.changed else None
    return Result(fixed.before.path, fixed.remaining, shown, fixed if fixed.changed else None, tuple(suppressed))


def processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _process_all(tasks: Sequence[Task], options: Options) -> Iterator[Result]:
    if options.cluster is not None and tasks:
        from torchlint import cluster

        yield from cluster.spread(options.cluster, partial(_process_in, os.getcwd()), tasks)
        return
    size = sum(len(task.data) for task in tasks)
    workers = min(options.jobs or processors(), len(tasks), 1 + size // _BYTES_WORTH_A_WORKER)
    if workers < 2:
        with _seldom_collected():
            yield from map(process, tasks)
        return
    from torchlint.workers import WorkerDiedError, spread

    # The largest files first, so that the last one does not keep the others waiting.
    unfinished = {task.path: task for task in sorted(tasks, key=lambda task: len(task.data), reverse=True)}
    try:
        for result in spread(process, tuple(unfinished.values()), workers, _prepare_worker):
            del unfinished[result.path]
            yield result
    except WorkerDiedError:
        for task in [task for task in tasks if task.path in unfinished]:
            yield _process_alone(task)


def _process_in(folder: str, task: Task) -> Result:
    """On another machine, or in another process: paths are relative to the folder where the run began."""
    os.chdir(folder)
    return process(task)


def _process_alone(task: Task) -> Result:
    """One file in a process of its own, after some file of the pool took its process down."""
    from torchlint.workers import WorkerDiedError, spread

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
        gc.set_threshold(*before)


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(*_GARBAGE_THRESHOLD)


def fix_tree(
    paths: Sequence[Path], configuration: Configuration | None = None, unsafe: bool = True, jobs: int = 0
) -> dict[Path, Fixed]:
    """The fixed text of every file below `paths` that fixes change, by the path as discovered. Nothing is written.

    Raises ConfigError, and FileNotFoundError for a path that does not exist.
    """
    found = discover(paths, configuration or Configuration())
    if found.missing:
        raise FileNotFoundError(f"{found.missing[0]}: no such file or folder")
    targets = [Target(t.path, replace(t.settings, unsafe_fixes=unsafe)) for t in found.targets]
    results = run(targets, Options(jobs=jobs, fix=True))
    return {result.path: result.fixed for result in results if result.fixed is not None}
