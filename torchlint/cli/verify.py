"""`torchlint verify`: run the user's command before and after the fixes, and compare."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import _running as running
from torchlint.cli._request import list_option
from torchlint.config import ConfigError, Selection, check_selectors

if TYPE_CHECKING:
    from torchlint.fixing.passes import Fixed
    from torchlint.fixing.units import FixUnits, Key
    from torchlint.runtime_check import Candidate, Options, Verdict


@click.command("verify", short_help="Run a command before and after the fixes, and compare.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@list_option("--select", help="Only the fixes of these rules.")
@list_option("--ignore", help="Not the fixes of these rules.")
@click.option(
    "--unsafe-fixes/--safe-only",
    default=True,
    show_default=True,
    help="Check unsafe fixes too, or only what --fix would apply.",
)
@click.option("--together", is_flag=True, help="Check all fixes as one, not each by itself first.")
@click.option("--apply", is_flag=True, help="Write the fixes that proved harmless into your files.")
@running.options(running.steps(30), running.warmup)
@click.option(
    "--blocks",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Timed rounds; each runs the original twice and the rewritten program once. 0: no timing.",
)
@running.options(running.timeout, running.seed, running.python, running.root)
@running.options(running.formats("text", "json", "html", "markdown"), running.keep, running.quiet)
def command(words: tuple[str, ...], **given: Any) -> int:
    """Run COMMAND before and after the fixes, in copies of the project, and compare results, time and memory.

    Each fix is tried alone, then all those together that proved harmless. Runs your code several times, observed and
    then timed; your files are changed by --apply only. Write the command after --.

    Exit code 0: same results and a measured gain (or nothing to fix), 1: other results, slower or broken, 2: wrong
    usage, or the command fails as it is, 3: not clear, look at the report. With --apply, fixes that were refused count
    for nothing.
    """
    if given["apply"] and given["together"]:
        raise click.UsageError("--apply keeps the fixes that are harmless by themselves: leave out --together")
    running.prepare()
    root, folder = running.place(given["root"])
    programs = running.programs(words, root, folder)
    running.say(given)("looking for fixes in the files of the project")
    units = _units(root, given, [root / name for name in programs])
    if not units.units:
        click.echo("Nothing to verify: no fix applies.", err=True)
        return 0
    verdict = _verify(words, root, units, _options(folder, programs, given), given)
    if given["output_format"] == "json":
        click.echo(verdict.to_json())
    elif given["output_format"] == "text":
        _print(verdict)
    else:
        click.echo(_document(given["output_format"], verdict, units, root))
    if verdict.overall.value == "error" and (hint := running.files_above(root)) is not None:
        running.say(given)(hint)
    if given["apply"]:
        return _apply(verdict, units, root)
    is_refused = any(fix.status.value == "refused" for fix in verdict.fixes)
    code: int = verdict.overall.exit_code
    return 1 if is_refused and code != 2 else code


def _units(root: Path, given: dict[str, Any], notebooks: Collection[Path]) -> FixUnits:
    from torchlint.fixing.units import FixUnits
    from torchlint.settings_file import CommandLine, Configuration

    try:
        selection = Selection(
            check_selectors(given["select"], "--select") or None, ignore=check_selectors(given["ignore"], "--ignore")
        )
        return FixUnits((root,), Configuration(CommandLine(selection)), given["unsafe_fixes"], notebooks)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _verify(words: Sequence[str], root: Path, units: FixUnits, options: Options, given: dict[str, Any]) -> Verdict:
    from torchlint.runtime_check import CommandError, OverlayError, verify_fixes, verify_trees

    progress = running.say(given)
    try:
        if not given["together"]:
            candidates = _candidates(units, root)

            def rewrite(chosen: Collection[Candidate]) -> dict[Path, bytes]:
                return _texts(units.fixed([candidates[candidate] for candidate in chosen]))

            return verify_fixes(root, list(candidates), rewrite, words, options, progress=progress)
        fixed = units.fixed([unit.key for unit in units.units])
        counts = {path.resolve(): file.applied_by_code for path, file in fixed.items()}
        return verify_trees(root, _texts(fixed), words, options, fixes=counts, progress=progress)
    except (CommandError, OverlayError) as error:
        raise click.UsageError(str(error)) from error


def _candidates(units: FixUnits, root: Path) -> dict[Candidate, Key]:
    from torchlint.runtime_check import Candidate

    return {
        Candidate(
            unit.finding.code,
            unit.path.resolve().relative_to(root).as_posix(),
            unit.finding.line,
            unit.lines,
            unit.finding.message,
            column=unit.finding.column,
            cell=unit.finding.cell,
        ): unit.key
        for unit in units.units
    }


def _texts(fixed: Mapping[Path, Fixed]) -> dict[Path, bytes]:
    return {path.resolve(): running.program(file.source) for path, file in fixed.items()}


def _apply(verdict: Verdict, units: FixUnits, root: Path) -> int:
    """Write what was kept: all files, or none where one changed in the meantime or cannot be written."""
    from torchlint.fixing.writing import WriteError, write

    if verdict.overall.value == "reject":
        click.echo("Nothing was written.", err=True)
        return 1
    candidates = _candidates(units, root)
    fixed = units.fixed([candidates[candidate] for candidate in verdict.kept])
    try:
        write(*fixed.values())
    except WriteError as error:
        raise click.UsageError(f"nothing was written: {error}") from error
    return verdict.overall.exit_code


def _options(folder: Path, programs: Mapping[str, bytes], given: dict[str, Any]) -> Options:
    from torchlint.runtime_check import Options

    names = ("steps", "warmup", "blocks", "seed", "timeout", "python", "keep")
    return Options(folder=folder, programs=programs, **{name: given[name] for name in names})


def _document(form: str, verdict: Verdict, units: FixUnits, root: Path) -> str:
    from torchlint.output.changes import unified_diff
    from torchlint.runtime_check import html, markdown

    candidates = _candidates(units, root)
    diffs = {fix.fix: "".join(map(unified_diff, units.fixed([candidates[fix.fix]]).values())) for fix in verdict.fixes}
    return html.page(verdict, diffs) if form == "html" else markdown.comment(verdict, diffs)


def _print(verdict: Verdict) -> None:
    from rich.console import Console

    from torchlint.runtime_check.report import show

    show(verdict, Console(file=sys.stdout))
