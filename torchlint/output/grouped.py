"""Findings below the file that they are in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from torchlint.finding import Finding
from torchlint.output import Outcome, why_suppressed
from torchlint.terminal import paint, printable


def render(outcome: Outcome, color: bool) -> str:
    found = [finding for finding, _ in outcome.shown()]
    blocks = ("".join(_block(path, list(group), outcome, color)) for path, group in groupby(found, lambda f: f.path))
    return "\n".join(blocks)


def _block(path: str, findings: list[Finding], outcome: Outcome, color: bool) -> Iterator[str]:
    yield f"{paint(printable(path), color, bold=True)}:\n"
    wide = max(len(_where(finding)) for finding in findings)
    for finding in findings:
        mark = paint("[*] ", color, "cyan") if outcome.is_fixable(finding) else ""
        code = paint(finding.code, color, "red", bold=True)
        message = printable(finding.message + why_suppressed(finding))
        yield f"  {_where(finding):<{wide}}  {code} {mark}{message}\n"


def _where(finding: Finding) -> str:
    return ("" if finding.cell is None else f"cell {finding.cell}:") + f"{finding.line}:{finding.column}"
