"""`torchlint verify-function`: two versions of one function on the same arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import _running as running
from torchlint.cli.bench import _shared as shared

if TYPE_CHECKING:
    from torchlint.runtime_check.function import FunctionVerdict, Version

_SHOWN = 3


@click.command("verify-function", short_help="Compare two versions of one function.")
@click.argument("old")
@click.argument("new")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--steps", type=click.IntRange(min=1), default=10, show_default=True, help="Stop COMMAND after so many.")
@click.option(
    "--calls", type=click.IntRange(min=1), default=60, show_default=True, help="Made-up calls, without a COMMAND."
)
@running.options(running.seed, running.timeout, running.python, running.root)
@shared.options()
@shared.needs_torch
def command(old: str, new: str, words: tuple[str, ...], **given: Any) -> tuple[str, int]:
    """Call OLD and NEW with the same arguments, and compare all that comes of it: results, exceptions, gradients,
    arguments written to, buffers, random numbers.

    A function is path/to/file.py:function or package.module:Class.method. With COMMAND the arguments are those of real
    calls in one run of it, in a copy of the project; without one they are made up from jaxtyping annotations and from
    shapes in docstrings and comments. Runs your code.

    Exit code 0: the same, bit by bit or but for rounding, 1: different, 2: wrong usage or no call, 3: not clear.
    """
    from torchlint.runtime_check import CommandError, OverlayError
    from torchlint.runtime_check.function import FunctionError, load

    try:
        versions = load(old), load(new)
        verdict = _recorded(*versions, words, given) if words else _generated(*versions, given)
    except (FunctionError, CommandError, OverlayError) as error:
        raise shared.Failure(str(error)) from error
    as_json = given["output_format"] == "json"
    return verdict.to_json() if as_json else "\n".join(_lines(verdict)), verdict.exit_code


def _recorded(old: Version, new: Version, words: tuple[str, ...], given: dict[str, Any]) -> FunctionVerdict:
    from torchlint.runtime_check.function import verify_function
    from torchlint.runtime_check.function.record import Run, record

    running.prepare()
    root, folder = running.place(given["root"])
    options = {name: given[name] for name in ("steps", "timeout", "seed", "python")}
    found = record(old, Run(words, root, folder, **options), running.say(given))
    return verify_function(old, new, found.calls, seen=found.seen, unrecorded=found.unrecorded)


def _generated(old: Version, new: Version, given: dict[str, Any]) -> FunctionVerdict:
    from torchlint.runtime_check.function import verify_function
    from torchlint.runtime_check.function.generate import generated

    return verify_function(old, new, generated(old, given["calls"], given["seed"]), generated=True)


def _lines(verdict: FunctionVerdict) -> Iterator[str]:
    yield f"{verdict.verdict.value}: {verdict.reason}"
    yield f"  versions    {verdict.old} and {verdict.new}"
    yield f"  arguments   {_arguments(verdict)}"
    for reason, count in verdict.unrecorded.items():
        yield f"              {count} could not be recorded: {reason}"
    worst = [call for call in verdict.calls if call.verdict is verdict.verdict and call.differences]
    for call in worst[:_SHOWN]:
        yield f"  {call.label}: {call.reason}"
        for item in call.differences:
            distance = f", {item.distance:.1e} of the largest" if item.distance is not None else ""
            values = f": {item.before} became {item.after}" if item.before or item.after else ""
            yield f"    {item.where}: {item.what}{values}{distance}"
    yield from (f"  note: {note}" for note in verdict.notes)


def _arguments(verdict: FunctionVerdict) -> str:
    count = len(verdict.calls)
    if verdict.arguments == "recorded":
        return f"of {count} of the {verdict.seen} calls in the run of the command"
    outside = f"; the original refuses {verdict.outside} more" if verdict.outside else ""
    return f"of {count} calls made up from annotations and shape comments, none from a real run{outside}"
