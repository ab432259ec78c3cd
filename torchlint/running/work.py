"""What is done with one file: it is linted, or fixed in memory."""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from torchlint.config import Settings
from torchlint.diagnostics import INTERNAL_ERROR, SYNTAX_ERROR, diagnose
from torchlint.engine import examine
from torchlint.filters.suppression import may_suppress
from torchlint.finding import Finding
from torchlint.fixing.passes import Fixed, fix_source
from torchlint.running.machine import characters_kept
from torchlint.running.task import Result, Surroundings, Task
from torchlint.settings_file import load_plugins
from torchlint.source import Source, UnreadableSourceError

if TYPE_CHECKING:
    from torchlint.semantics.project import Project

_CHARACTERS_OF_GARBAGE = 6_000_000  # of files whose models are no longer kept; they hold themselves until looked for


def process(task: Task) -> Result:
    """Lint or fix one file. Whatever goes wrong is a finding."""
    load_plugins(task.settings.plugins)
    try:
        source = Source.from_bytes(task.data, task.path)
    except UnreadableSourceError as error:
        return Result(task.path, (diagnose(SYNTAX_ERROR, f"the file {error}", task.path),))
    project = _project(task.around)
    try:
        if task.fix is None:
            found = examine(source, task.settings, project=project)
            shown = source if found.findings or found.suppressed else None
            return Result(task.path, tuple(found.findings), shown, None, tuple(found.suppressed), found.seconds)
        project.looked_at.clear()
        before = source if task.before is None else Source.from_bytes(task.before, task.path)
        fixed = fix_source(before, task.settings, task.fix, project=project, start=source)
        return replace(fixed_result(fixed, task.settings, project), looked_at=frozenset(project.looked_at))
    except Exception as error:
        message = f"the engine crashed: {type(error).__name__}: {error}"
        return Result(task.path, (diagnose(INTERNAL_ERROR, message, task.path),))
    finally:
        _clear_away(project)


def _clear_away(project: Project) -> None:
    if project.let_go > _CHARACTERS_OF_GARBAGE:
        gc.collect()
        project.let_go = 0


def fixed_result(fixed: Fixed, settings: Settings, project: Project) -> Result:
    """The result of a file after its fixes, with what is suppressed in it."""
    suppressed: list[Finding] = []
    if settings.scope is not None or may_suppress(fixed.source.data):
        suppressed = examine(fixed.source, settings, project=project).suppressed
    shown = fixed.source if fixed.remaining or suppressed or fixed.changed else None
    return Result(fixed.before.path, fixed.remaining, shown, fixed if fixed.changed else None, tuple(suppressed))


@lru_cache(maxsize=1)
def _project(around: Surroundings) -> Project:
    """What one process has read of the project."""
    from torchlint.semantics.project import Project

    return Project(characters_kept=characters_kept()).showing(around.changed)
