"""What was found, in the format that was asked for: one module per format, each with `render(outcome, color)`."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchlint.finding import Applicability, Finding
from torchlint.runner import Result
from torchlint.source import Source

FORMATS = ("full", "concise", "json", "github", "sarif")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one call of `check`. `unsafe`: unsafe fixes count as fixable."""

    results: Sequence[Result]
    checked: int
    unsafe: bool = False
    fixed: int = 0

    def findings(self) -> Iterator[tuple[Finding, Source | None]]:
        for result in self.results:
            for finding in result.findings:
                yield finding, result.source

    def is_fixable(self, finding: Finding) -> bool:
        if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
            return False
        return self.unsafe or finding.fix.applicability is Applicability.SAFE


def render(output_format: str, outcome: Outcome, color: bool = False) -> str:
    """The whole output, ending in a newline unless it is empty."""
    module = importlib.import_module(f"{__name__}.{output_format}")
    text: str = module.render(outcome, color)
    return text


def place(finding: Finding) -> str:
    """path:line:column, in a notebook path:cell N:line:column."""
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return f"{finding.path}:{cell}{finding.line}:{finding.column}"


def summary(outcome: Outcome) -> str:
    """One line: what is left, and what would fix it."""
    found = [finding for finding, _ in outcome.findings()]
    fixed = f"Fixed {count(outcome.fixed, 'finding')}. " if outcome.fixed else ""
    if not found:
        return f"{fixed}Checked {count(outcome.checked, 'file')}, found nothing{' more' if fixed else ''}."
    files = len({finding.path for finding in found})
    parts = []
    fixable = sum(map(outcome.is_fixable, found))
    unsafe = sum(f.fix is not None and f.fix.applicability is Applicability.UNSAFE for f in found)
    if fixable:
        parts.append(f"{fixable} fixable with --fix" + (" --unsafe-fixes" if outcome.unsafe and unsafe else ""))
    if unsafe and not outcome.unsafe:
        parts.append(f"{unsafe}{' more' if fixable else ''} with --unsafe-fixes")
    hint = f" ({', '.join(parts)})" if parts else ""
    left = "left " if fixed else ""
    return f"{fixed}Found {count(len(found), 'finding')} {left}in {files} of {count(outcome.checked, 'file')}{hint}."


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def statistics(outcome: Outcome, as_json: bool) -> str:
    """How often each rule was found, most frequent first."""
    counts = Counter((finding.code, finding.name) for finding, _ in outcome.findings())
    fixable = Counter(finding.code for finding, _ in outcome.findings() if outcome.is_fixable(finding))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if as_json:
        import json

        rows = [
            {"code": code, "name": name, "count": number, "fixable": fixable[code]} for (code, name), number in ranked
        ]
        return json.dumps(rows, indent=2) + "\n"
    wide = len(str(ranked[0][1])) if ranked else 0
    lines = [
        f"{number:>{wide}}  {code:<8}{'[*] ' if fixable[code] else '    '}{name}\n" for (code, name), number in ranked
    ]
    return "".join(lines)
