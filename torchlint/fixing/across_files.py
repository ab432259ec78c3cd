"""Fixes that change several files, made for all of them together and only where all are among those to check, and
fixes that those of other files make possible."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torchlint.diagnostics import INTERNAL_ERROR, diagnose
from torchlint.files.discovery import Target
from torchlint.finding import Finding
from torchlint.fixing.passes import MAX_PASSES, changes, fix_together, located
from torchlint.running.task import Result, Surroundings, Task
from torchlint.running.work import fixed_result
from torchlint.semantics.project import Project
from torchlint.source import Source, UnreadableSourceError


def within(finding: Finding, named: Mapping[str, Path]) -> Finding:
    """The finding without a fix that changes files other than the `named` ones: absolute paths, and how they were
    named."""
    found = located(finding, named)
    outside = [path for path in changes(found) if os.path.abspath(path) not in named]
    if not outside:
        return found
    here = Path.cwd()
    files = " and ".join(str(path.relative_to(here) if path.is_relative_to(here) else path) for path in outside)
    return replace(finding, fix=None, no_fix=f"it would change {files}, which is not among the files to check")


def settled(
    results: Mapping[Path, Result],
    tasks: Mapping[Path, Task],
    targets: Mapping[Path, Target],
    process: Callable[[Sequence[Task]], Iterable[Result]],
) -> dict[Path, Result]:
    """The results once no fix is left that those of other files make possible: what looked at a file that has changed
    is processed again, beside the files as they are by then. `tasks` has what is worth it, with a result or without."""
    found: dict[Path, Result] = {}
    fresh, around = dict(results), Surroundings()
    for _ in range(MAX_PASSES):
        fresh |= _fixed_together(fresh, found, targets, around)
        found |= fresh
        sources = tuple(result.fixed.source for result in found.values() if result.fixed is not None)
        known = {source.path: source.data for source in around.changed}
        changed = {os.path.abspath(source.path) for source in sources if source.data != known.get(source.path)}
        if not changed:
            break
        around = Surroundings(sources)
        stale = [task for task in tasks.values() if _is_stale(task, found, changed)]
        fresh = {
            result.path: _following(found.get(result.path), result)
            for result in process([_next(task, found, around) for task in stale])
        }
    return found


def _is_stale(task: Task, found: Mapping[Path, Result], changed: set[str]) -> bool:
    """Whether a file looked at one that has changed, which may be, too, where it was known to be clean."""
    if task.path not in found:
        return True
    return not changed.isdisjoint(found[task.path].looked_at - {os.path.abspath(task.path)})


def _next(task: Task, found: Mapping[Path, Result], around: Surroundings) -> Task:
    result = found.get(task.path)
    if result is None or result.fixed is None:
        return replace(task, around=around)
    return replace(task, data=result.fixed.source.data, before=result.fixed.before.data, around=around)


def _following(before: Result | None, result: Result) -> Result:
    """A result together with that of the same file which it goes on from."""
    if before is None or before.fixed is None:
        return result
    if result.fixed is None:
        crashes = tuple(finding for finding in result.findings if finding.code == INTERNAL_ERROR.code)
        return replace(before, findings=(*crashes, *before.findings)) if crashes else result
    applied = before.fixed.applied + result.fixed.applied
    together = before.fixed.together | result.fixed.together
    return replace(result, fixed=replace(result.fixed, applied=applied, together=together))


def _fixed_together(
    fresh: Mapping[Path, Result], earlier: Mapping[Path, Result], targets: Mapping[Path, Target], around: Surroundings
) -> dict[Path, Result]:
    """The results of files that fixes change together, made anew in this process, which has them all: from what they
    were `earlier`, beside the others as they were then."""
    settings = {path: target.settings for path, target in targets.items()}
    made: dict[Path, Result] = {}
    for group in _groups(fresh, earlier, {os.path.abspath(path): path for path in targets}):
        first = min(group)
        try:
            before = [_source(targets[path]) for path in sorted(group)]
            start = [_by_now(source, earlier) for source in before]
            project = Project().showing(around.changed)
            fixed = fix_together(before, settings, project, start=start)
        except (OSError, UnreadableSourceError):
            continue
        except Exception as error:
            crash = diagnose(INTERNAL_ERROR, f"the engine crashed: {type(error).__name__}: {error}", first)
            known = fresh.get(first, Result(first))
            made[first] = replace(known, findings=(crash, *known.findings))
            continue
        for path, file in fixed.items():
            result = replace(fixed_result(file, settings[path], project), looked_at=frozenset(project.looked_at))
            made[path] = _following(earlier.get(path), result)
    return made


def _by_now(source: Source, earlier: Mapping[Path, Result]) -> Source:
    result = earlier.get(source.path)
    return source if result is None or result.fixed is None else result.fixed.source


def _source(target: Target) -> Source:
    """Raises OSError and UnreadableSourceError."""
    return Source.read(target.path) if target.data is None else Source.from_bytes(target.data, target.path)


def _groups(fresh: Mapping[Path, Result], earlier: Mapping[Path, Result], named: Mapping[str, Path]) -> list[set[Path]]:
    """Files that have to change together, for that some fix changes several of them, and those tied to them before."""
    groups: list[set[Path]] = []
    for result in fresh.values():
        for finding in result.findings:
            files = {result.path, *changes(located(finding, named))}
            if len(files) > 1 and files <= set(named.values()):
                files = files.union(*(_tied(path, earlier) for path in files))
                joined = files.union(*(group for group in groups if group & files))
                groups = [*(group for group in groups if not group & files), joined]
    return groups


def _tied(path: Path, earlier: Mapping[Path, Result]) -> frozenset[Path]:
    result = earlier.get(path)
    return result.fixed.together if result is not None and result.fixed is not None else frozenset()
