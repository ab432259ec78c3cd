"""`torchlint profile`: what the findings cost in one run of the user's command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import FAILED
from torchlint.cli import _running as running

if TYPE_CHECKING:
    from torchlint.finding import Finding
    from torchlint.finding_lines import FindingLines
    from torchlint.runtime_check import profile
    from torchlint.runtime_check.profile import Hotspot, Measured, Profile
    from torchlint.source import Source


@click.command("profile", short_help="Rank the findings by what they cost in one run of a command.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@running.options(running.steps(40), running.warmup, running.timeout, running.seed, running.python, running.root)
@running.options(running.output_format, running.keep, running.quiet)
def command(words: tuple[str, ...], **given: Any) -> int:
    """Run COMMAND once, in a copy of the project, and rank the findings in the files that ran by what their lines cost
    in a step: time, synchronisations, memory kept, bytes moved. Then come lines that cost something and that no finding
    speaks of, and findings whose lines did not run.

    After the warm-up the first half of the steps is timed and the other counted; a program of very few steps runs a
    second time to be counted. Write the command after --.

    Exit code 0: profiled, 2: wrong usage, or the command fails.
    """
    from torchlint.runtime_check import CommandError, Options, OverlayError
    from torchlint.runtime_check.profile import measure, ranked
    from torchlint.runtime_check.trials import FailedError

    running.prepare()
    root, folder = running.place(given["root"])
    names = ("steps", "warmup", "seed", "timeout", "python", "keep")
    programs = running.programs(words, root, folder)
    options = Options(folder=folder, programs=programs, **{name: given[name] for name in names})
    try:
        measured = measure(root, words, options, running.say(given))
    except (CommandError, OverlayError) as error:
        raise click.UsageError(str(error)) from error
    except FailedError as failure:
        click.echo(f"torchlint: {failure.reason}", err=True)
        click.echo("".join(f"  | {line}\n" for line in failure.log.splitlines()), err=True, nl=False)
        if (hint := running.files_above(root)) is not None:
            running.say(given)(hint)
        return FAILED
    found = _in_cells(root, ranked(measured, list(_findings(root, measured))))
    if given["output_format"] == "json":
        click.echo(found.to_json())
    else:
        _print(found)
    return 0


def _findings(root: Path, measured: Measured) -> Iterator[profile.Finding]:
    """Of the files of the project that the command loaded."""
    from torchlint.config import ConfigError
    from torchlint.files.discovery import discover
    from torchlint.finding_lines import FindingLines
    from torchlint.running.runner import Options, run
    from torchlint.settings_file import Configuration

    paths = [root / path for path in sorted(measured.ran)]
    try:
        targets = discover(paths, Configuration()).targets
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    for result in run(targets, Options()):
        if result.source is not None:
            lines_of = FindingLines(result.source)
            path = result.path.resolve().relative_to(root).as_posix()
            yield from (_placed(finding, path, lines_of) for finding in result.findings)


def _placed(finding: Finding, path: str, lines_of: FindingLines) -> profile.Finding:
    """A finding about a loader costs what the loops over it wait; what a memory finding keeps was made where its chain
    of facts leads."""
    from torchlint.runtime_check import profile

    lines = lines_of.of(finding)
    behind = frozenset(step.line for step in finding.chain)
    if finding.code.startswith("DATA"):
        lines |= behind & lines_of.loops()
    origins = {path: behind - lines} if finding.code.startswith("MEM") else {}
    spoken_of = {path: lines}
    return profile.Finding(
        finding.code, finding.name, path, finding.line, finding.message, spoken_of, origins, finding.cell
    )


def _in_cells(root: Path, found: Profile) -> Profile:
    """With lines of notebooks as those of their cells."""
    from torchlint.source import Source

    notebooks = {spot.path for spot in found.hotspots if spot.path.endswith(".ipynb")}
    sources = {path: Source.read(root / path) for path in notebooks}
    spots = (_in_cell(spot, sources[spot.path]) if spot.path in sources else spot for spot in found.hotspots)
    return replace(found, hotspots=tuple(spots))


def _in_cell(spot: Hotspot, notebook: Source) -> Hotspot:
    cell, line, _ = notebook.locate(notebook.line_starts[spot.line - 1])
    return replace(spot, cell=cell, line=line)


def _print(found: Profile) -> None:
    from rich.console import Console

    from torchlint.runtime_check.profile_report import lines

    console = Console(file=sys.stdout)
    for line in lines(found):
        console.print(line, soft_wrap=True, highlight=False)
