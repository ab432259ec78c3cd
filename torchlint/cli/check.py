"""`torchlint check`: find, and with `--fix` rewrite."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from torchlint.cli import command_names, forget_stdout
from torchlint.cli._request import CheckCommand, Request, options, requested
from torchlint.config import ConfigError, nearest
from torchlint.diagnostics import UNREADABLE_FILE, diagnose, is_failure
from torchlint.files.atomic import replace_file
from torchlint.files.discovery import Discovery, Target, discover, is_excluded
from torchlint.filters.narrowing import Baselines
from torchlint.finding import Severity
from torchlint.output import Outcome, count, render, statistics, summary
from torchlint.running.cache import FOLDER
from torchlint.running.progress import Progress
from torchlint.running.runner import Options, run, within
from torchlint.running.task import Result, Task
from torchlint.settings_file import Configuration
from torchlint.source import is_worth_linting
from torchlint.terminal import use_color

CLEAN, FOUND, FAILED = 0, 1, 2
# Commands that other linters have, and what is called so here.
_OF_OTHER_TOOLS = {"explain": "rule", "rules": "rule --all", "fix": "check --fix", "lint": "check"}


@click.command("check", cls=CheckCommand, short_help="Find, and with --fix rewrite.")
@options
def command(**given: Any) -> int:
    """Find what wastes a GPU or trains wrong in PATHS (files and folders, the working directory unless given; - is
    stdin).

    Exit code 0: nothing left, 1: findings left, 2: wrong usage or a failure.
    """
    request = requested(**given)
    try:
        if request.watch:
            return _watch(request)
        configuration = request.configuration()
        return _check_stdin(request, configuration) if request.is_stdin else _check_paths(request, configuration)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _watch(request: Request) -> int:
    """Until interrupted. A mistake in the settings is said, and the next change tried."""
    from torchlint.files.watching import changes

    for _ in changes(request.paths or (Path(),)):
        try:
            _check_paths(request, request.configuration())
        except (ConfigError, click.UsageError) as error:
            click.echo(f"Error: {error}", err=True)
        request.say("Waiting for changes; Ctrl-C ends.")
    return CLEAN


def _check_paths(request: Request, configuration: Configuration) -> int:
    found = discover(request.paths or (Path(),), configuration)
    for path in found.missing:
        known = _OF_OTHER_TOOLS.get(str(path))
        hint = f"; did you mean `{known}`?" if known else nearest(str(path), command_names())
        click.echo(
            f"torchlint: {path}: no such file or folder{hint and hint.replace('mean', 'mean the command')}", err=True
        )
    baselines = Baselines()
    targets = request.narrowed(found.targets, baselines)
    if not targets and not found.problems:
        if not found.missing:
            request.say("No Python file to check." if not found.targets else "No line to check has changed.")
        _print(request, Outcome((), 0))
        return FAILED if found.missing else CLEAN
    cache = None if request.no_cache or request.timing else configuration.for_folder(Path.cwd()).root / FOLDER
    chosen = Options(
        request.jobs, request.fixes, cache, request.show_suppressed or "sarif" in request.formats, request.cluster
    )
    with Progress(enabled=not request.quiet) as progress:
        results = [*_problems(found), *run(targets, chosen, progress.update)]
    if request.timing:
        from torchlint.output.timing import table

        click.echo(table(result.seconds for result in results), err=True, nl=False)
    for sentence in baselines.stale(targets, [finding for result in results for finding in result.suppressed]):
        request.say(f"torchlint: {sentence}")
    unsafe = any(target.settings.unsafe_fixes for target in targets)
    if request.diff:
        code = _print_diff(request, results)
    else:
        results = _written(request, results, targets)
        least = {target.path: target.settings.error_on for target in targets}
        outcome = Outcome(
            results, len(targets) + len(found.problems), unsafe, _applied(results), request.show_suppressed
        )
        code = _report(request, outcome, least)
    return FAILED if found.missing else code


def _written(request: Request, results: list[Result], targets: Sequence[Target]) -> list[Result]:
    """The results once what was asked for is in the files."""
    if not (request.interactive or request.fixes or request.add_ignore is not None):
        return results
    from torchlint.cli._changes import interviewed, suppressed, write_all

    if request.add_ignore is not None:
        return [suppressed(result, request.add_ignore) for result in results]
    return write_all(interviewed(results, targets, request.color) if request.interactive else results, targets)


def _problems(found: Discovery) -> list[Result]:
    return [
        Result(path, (diagnose(UNREADABLE_FILE, f"the path cannot be read: {what}", path),))
        for path, what in found.problems
    ]


def _applied(results: Sequence[Result]) -> int:
    return sum(len(result.fixed.applied) for result in results if result.fixed is not None)


def _exit_code(request: Request, outcome: Outcome, least: Mapping[Path, Severity]) -> int:
    """`least` is the severity from which on a finding counts, by the path of its file."""
    found = [
        (finding, least.get(result.path, Severity.INFO)) for result in outcome.results for finding in result.findings
    ]
    codes = [finding.code for finding, severity in found if finding.severity.reaches(severity)]
    if any(map(is_failure, codes)):
        return FAILED
    if codes and not request.fix_only:
        return FOUND
    return FOUND if outcome.fixed and request.exit_non_zero_on_fix else CLEAN


def _report(request: Request, outcome: Outcome, least: Mapping[Path, Severity]) -> int:
    shown = outcome.of_failures() if request.fix_only else outcome
    _print(request, shown)
    request.say(_summary(request, shown))
    return _exit_code(request, outcome, least)


def _summary(request: Request, outcome: Outcome) -> str:
    if request.fix_only and not any(outcome.findings()):
        return f"Fixed {count(outcome.fixed, 'finding')}."
    return summary(outcome, "Fixed" if request.add_ignore is None else "Suppressed")


def _print(request: Request, outcome: Outcome, stream: IO[str] | None = None) -> None:
    """Writes every output that was asked for. `stream` stands for stdout where that has to carry something else."""
    for output_format, file in request.outputs:
        color = file is None and use_color(request.color, stream or sys.stdout)
        if request.statistics:
            text = statistics(outcome, output_format == "json")
        else:
            text = render(output_format, outcome, color)
        if file is not None:
            _write_file(file, text)
        elif stream is None:
            _write_out(text)
        else:
            stream.write(text)
    if "github" in request.formats:
        from torchlint.output.github import append_to_step_summary

        append_to_step_summary(outcome)


def _write_file(file: Path, text: str) -> None:
    try:
        replace_file(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise click.UsageError(f"{file}: the output cannot be written: {error.strerror}") from error


def _write_out(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()


def _print_diff(request: Request, results: Sequence[Result]) -> int:
    from torchlint.output.changes import unified_diff

    fixed = [result.fixed for result in results if result.fixed is not None]
    _write_out("".join(map(unified_diff, fixed)))
    failures = [finding for result in results for finding in result.findings if is_failure(finding.code)]
    for finding in failures:
        click.echo(f"{finding.path}: {finding.code} {finding.message}", err=True)
    request.say(f"Would fix {count(_applied(results), 'finding')} in {count(len(fixed), 'file')}.")
    return FAILED if failures else FOUND if fixed else CLEAN


def _check_stdin(request: Request, configuration: Configuration) -> int:
    data = sys.stdin.buffer.read()
    path = request.stdin_filename or Path("-")
    baselines = Baselines()
    settings = configuration.for_path(path)
    targets = request.narrowed([Target(path, settings, data)], baselines)
    excluded = settings.force_exclude and is_excluded(path, settings)
    if excluded or not targets or not is_worth_linting(data):
        result = Result(path)
    else:
        from torchlint.running.work import process

        task = Task(path, data, targets[0].settings, settings.unsafe_fixes if request.fixes else None)
        result = within(process(task), {os.path.abspath(path): path})
    outcome = Outcome([result], 1, settings.unsafe_fixes, _applied([result]), request.show_suppressed)
    least = {path: settings.error_on}
    if request.diff:
        return _print_diff(request, [result])
    if not request.fixes:
        return _report(request, outcome, least)
    sys.stdout.buffer.write(data if result.fixed is None else result.fixed.source.data)
    sys.stdout.buffer.flush()
    shown = outcome.of_failures() if request.fix_only else outcome
    _print(request, shown, sys.stderr)
    request.say(_summary(request, shown))
    return _exit_code(request, outcome, least)
