"""`torchlint baseline`: write the file of accepted findings, or take out of it what is gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from torchlint.config import ConfigError
from torchlint.diagnostics import is_failure
from torchlint.files.discovery import Discovery, discover
from torchlint.filters.baseline import FILE, Baseline, total
from torchlint.filters.scope import Scope
from torchlint.output import count
from torchlint.running.cache import FOLDER
from torchlint.running.progress import Progress
from torchlint.running.runner import Options, run
from torchlint.running.task import Result
from torchlint.settings_file import Configuration

CLEAN, FOUND, FAILED = 0, 1, 2
_PATH = click.Path(path_type=Path)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("baseline", short_help="Accept today's findings, or drop what is gone.")
@click.argument("paths", nargs=-1, type=_PATH)
@click.option("--baseline", type=_FILE, metavar="FILE", help=f"The file; else that of the settings, else {FILE}.")
@click.option("--accept-new", is_flag=True, help="Take in findings that are not in the file yet.")
@click.option("--jobs", "-j", type=click.IntRange(min=0), default=0, help="Worker processes; 0 is one per processor.")
@click.option("--isolated", is_flag=True, help="Read no settings file.")
@click.option("--config", type=_FILE, metavar="FILE", help="Take the settings from this file.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but what is wrong.")
def command(
    paths: tuple[Path, ...],
    baseline: Path | None,
    accept_new: bool,
    jobs: int,
    isolated: bool,
    config: Path | None,
    quiet: bool,
) -> int:
    """Write what PATHS (files and folders, the working directory unless given) have today into the baseline, which
    `check --baseline FILE` then leaves out. Where the file is there, findings that are gone are taken out of it, and
    new ones come in with --accept-new only.

    Exit code 0: the baseline has everything that is found, 1: there are new findings, 2: wrong usage or a failure.
    """
    configuration = Configuration(explicit=config, isolated=isolated)
    try:
        file = baseline or configuration.for_path(Path()).baseline or Path(FILE)
        is_new = not file.exists()
        before = Baseline(file) if is_new else Baseline.read(file)
        found = discover(paths or (Path(),), configuration)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    if found.missing:
        raise click.UsageError(f"{found.missing[0]}: no such file or folder")
    cache = configuration.for_folder(Path.cwd()).root / FOLDER
    results = _results(found, before, Options(jobs, cache_folder=cache), quiet)
    new = [finding for result in results for finding in result.findings]
    failures = [finding for finding in new if is_failure(finding.code)]
    for finding in failures:
        click.echo(f"{finding.path}: {finding.code} {finding.message}", err=True)
    checked = {target.path: target.settings.codes(target.path) for target in found.targets}
    stale = before.stale((finding for result in results for finding in result.suppressed), checked)
    after = before.without(stale)
    if is_new or accept_new:
        after, new = after.with_findings(new), []
    try:
        after.write()
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from error
    if not quiet:
        _say(file, before, after, total(stale), is_new)
    if new and not failures:
        what = "is not" if len(new) == 1 else "are not"
        click.echo(f"{count(len(new), 'finding')} {what} in it; --accept-new takes them in.", err=True)
    return FAILED if failures else FOUND if new else CLEAN


def _results(found: Discovery, baseline: Baseline, options: Options, quiet: bool) -> list[Result]:
    targets = [
        replace(target, settings=replace(target.settings, scope=Scope(accepted=baseline.of(target.path))))
        for target in found.targets
    ]
    with Progress(enabled=not quiet) as progress:
        return run(targets, options, progress.update)


def _say(file: Path, before: Baseline, after: Baseline, gone: int, is_new: bool) -> None:
    if is_new:
        click.echo(f"Wrote {count(len(after), 'finding')} to {file}.", err=True)
        click.echo(f'Leave them out with --baseline {file}, or with `baseline = "{file}"` in the settings.', err=True)
        return
    came = len(after) - len(before) + gone
    click.echo(f"{file}: {count(len(after), 'finding')}, {gone} taken out, {came} taken in.", err=True)
