"""`torchlint bench RULES`: what the fixes of rules gain, on a program for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import _running as running
from torchlint.config import ConfigError, Selection, check_selectors

from . import _shared as shared
from ._shared import seconds

if TYPE_CHECKING:
    from torchlint.runtime_check.scenarios import Measurement, Scenario


@click.command("rules", short_help="What the fixes of rules gain, from small programs to large.")
@click.argument("codes", metavar="RULES")
@click.option("--blocks", type=click.IntRange(min=1), default=5, show_default=True, help="Timed rounds of each size.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add every sample to this file of evidence (JSON).",
)
@running.options(running.steps(30), running.timeout, running.python)
@shared.options()
@shared.needs_torch
def command(codes: str, blocks: int, output: Path | None, **given: Any) -> tuple[str, int]:
    """Run a program that has what a rule finds, in several sizes, before and after the fix of the rule, and compare
    results, counters and time as `verify` does. RULES are codes, families or names, as in VEC01,SYNC; `torchlint bench
    VEC01` is short for `torchlint bench rules VEC01`. A rule without such a program is named."""
    from torchlint.runtime_check import CommandError, Options
    from torchlint.runtime_check.scenarios import Result, add_evidence, measure

    chosen, missing = _chosen(codes)
    running.prepare()
    options = Options(blocks=blocks, **{name: given[name] for name in ("steps", "timeout", "python")})
    measured: list[Measurement] = []
    try:
        for one in measure(chosen, _fixed, options, running.say(given)):
            measured.append(one)
            if output is not None:
                add_evidence(output, f"torchlint bench {codes} --blocks {blocks}", one)
    except CommandError as error:
        raise shared.Failure(str(error)) from error
    return shared.shown("rules", Result(tuple(measured), tuple(missing)), _lines(measured, missing), given, None)


def _chosen(codes: str) -> tuple[list[Scenario], list[str]]:
    """The scenarios of these rules, and the codes of rules that have none."""
    from torchlint.rule import all_rules
    from torchlint.runtime_check.scenarios import scenarios

    try:
        selectors = check_selectors((part.strip() for part in codes.split(",") if part.strip()), "RULES")
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    wanted = sorted(Selection(select=selectors).apply(frozenset()) & all_rules().keys())
    known = scenarios()
    return [known[code] for code in wanted if code in known], [code for code in wanted if code not in known]


def _fixed(scenario: Scenario) -> str:
    from torchlint.config import Settings
    from torchlint.fixing.passes import fix_source
    from torchlint.source import Source

    return fix_source(Source.from_text(scenario.program), Settings.selecting(scenario.rule), unsafe=True).source.text


def _lines(measured: Sequence[Measurement], missing: Sequence[str]) -> Iterator[str]:
    environments = [one.verdict.environment for one in measured if one.verdict.environment is not None]
    if environments:
        yield f"Per training step, before and after the fix, on {environments[0].described}:"
        heading = ("rule", "size", "results", "operations", "synchronisations", "time", "ratio, with its 99 % interval")
        yield from shared.table(heading, map(_row, measured), left=3)
    if missing:
        yield f"no program for {', '.join(missing)}"


def _row(one: Measurement) -> tuple[str, ...]:
    verdict = one.verdict
    if verdict.equivalence is None or verdict.before is None or verdict.after is None or verdict.timing is None:
        return one.rule, str(one.size), f"{verdict.overall.value}: {'; '.join(verdict.reasons)}", "-", "-", "-", "-"
    effect, timing = verdict.timing.comparison.effect, verdict.timing
    before, after = (seconds(sorted(times)[len(times) // 2]) for times in (timing.original, timing.changed))
    return (
        one.rule,
        str(one.size),
        verdict.equivalence.verdict.value,
        f"{verdict.before.kernels:.0f} -> {verdict.after.kernels:.0f}",
        f"{verdict.before.syncs:.3g} -> {verdict.after.syncs:.3g}",
        f"{before} -> {after}",
        f"{effect.ratio:.3f} ({effect.low:.3f} to {effect.high:.3f})",
    )
