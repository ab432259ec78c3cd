"""What is done with one file: it is linted, or fixed in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from torchlint.config import Settings
from torchlint.diagnostics import INTERNAL_ERROR, SYNTAX_ERROR, diagnose
from torchlint.engine import examine
from torchlint.finding import Finding
from torchlint.fixing import Fixed, fix_source
from torchlint.settings_file import load_plugins
from torchlint.source import Source, UnreadableSourceError
from torchlint.suppression import may_suppress
from torchlint.task import Result, Task

if TYPE_CHECKING:
    from torchlint.semantics.project import Project


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


@lru_cache(maxsize=1)
def _project(run: str) -> Project:
    """What one process has read of the project in one run."""
    from torchlint.semantics.project import Project

    return Project()
