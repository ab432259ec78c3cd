"""Fixes that change several files: made for all of them together, and only where all are among those to check."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torchlint.diagnostics import INTERNAL_ERROR, diagnose
from torchlint.discovery import Target
from torchlint.finding import Finding
from torchlint.fixing import changes, fix_together, located
from torchlint.semantics.project import Project
from torchlint.source import Source, UnreadableSourceError
from torchlint.task import Result
from torchlint.work import fixed_result


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


def fixed_together(results: Mapping[Path, Result], targets: Mapping[Path, Target]) -> dict[Path, Result]:
    """The results of files that fixes change together, made anew in this process, which has them all."""
    groups = _groups(results, {os.path.abspath(path): path for path in targets})
    settings = {path: target.settings for path, target in targets.items()}
    found: dict[Path, Result] = {}
    for group in groups:
        first = min(group)
        try:
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
