"""Putting into the files what `torchlint check` was asked to change."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from torchlint.config import Settings
from torchlint.diagnostics import UNREADABLE_FILE, diagnose
from torchlint.files.discovery import Target
from torchlint.finding import Finding
from torchlint.fixing.writing import WriteError, write
from torchlint.running.runner import within
from torchlint.running.task import Result, Task
from torchlint.running.work import fixed_result, process
from torchlint.source import Source
from torchlint.terminal import use_color

_QUESTION = "Fix it? yes, no, all of this rule, don't ask of this rule again, quit"


def write_all(results: Sequence[Result], targets: Sequence[Target]) -> list[Result]:
    """The results once their fixes are in the files; where they cannot be, what was found before them."""
    fixed = {result.path: result.fixed for result in results if result.fixed is not None}
    staged = {target.path for target in targets if target.is_staged}
    problems: dict[Path, str] = {}
    for group in {file.together | {path} for path, file in fixed.items()}:
        try:
            if any(path in staged for path in group):
                raise WriteError("there are changes that are not staged")
            write(*(fixed[path] for path in sorted(group)))
        except WriteError as error:
            what = "the file is as it was" if len(group) == 1 else "its files are as they were"
            problems |= dict.fromkeys(group, f"the fixes cannot be written: {error}; {what}")
    settings = {target.path: target.settings for target in targets}
    return [
        _unwritten(result, problems[result.path], settings) if result.path in problems else result for result in results
    ]


def _unwritten(result: Result, message: str, settings: Mapping[Path, Settings]) -> Result:
    assert result.fixed is not None
    before = process(Task(result.path, result.fixed.before.data, settings[result.path]))
    problem = diagnose(UNREADABLE_FILE, message, result.path)
    found = replace(before, findings=(problem, *before.findings))
    return within(found, {os.path.abspath(path): path for path in settings})


def interviewed(results: Sequence[Result], targets: Sequence[Target], color_choice: str) -> list[Result]:
    """The results once the user has said which fixes to make."""
    from torchlint.fixing.interactive import Answer, Interview
    from torchlint.output.full import question
    from torchlint.semantics.project import Project

    color = use_color(color_choice, sys.stderr)

    def ask(finding: Finding, source: Source) -> Answer:
        click.echo(question(finding, source, color), err=True)
        try:
            return Answer(click.prompt(_QUESTION, type=click.Choice([a.value for a in Answer]), err=True))
        except click.Abort:
            return Answer.QUIT

    interview = Interview(ask)
    by_path = {target.path: target for target in targets}
    project = Project()
    return [
        fixed_result(
            interview.fix(result.source, by_path[result.path].settings, project), by_path[result.path].settings, project
        )
        if result.source is not None and result.findings
        else result
        for result in results
    ]


def suppressed(result: Result, reason: str) -> Result:
    """The result once comments suppress its findings in the file."""
    from torchlint.filters.add_ignore import add_ignores

    if result.source is None or not result.findings:
        return result
    try:
        commented = add_ignores(result.source, result.findings, reason)
        if commented.changed:
            write(commented)
    except (UnicodeEncodeError, WriteError) as error:
        message = f"the comments cannot be written: {error}; the file is as it was"
        return replace(result, findings=(diagnose(UNREADABLE_FILE, message, result.path), *result.findings))
    return replace(result, findings=commented.remaining, fixed=commented)
