"""What was found, in the format that was asked for: one module per format, each with `render(outcome, color)`."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torchlint.diagnostics import is_failure
from torchlint.finding import Applicability, Finding, SuppressedBy
from torchlint.running.task import Result
from torchlint.source import Source

FORMATS = ("full", "concise", "grouped", "json", "json-lines", "github", "gitlab", "junit", "rdjson", "sarif")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one call of `check`. `unsafe`: unsafe fixes count as fixable. `show_suppressed`: what is suppressed is printed
    among the rest."""

    results: Sequence[Result]
    checked: int
    unsafe: bool = False
    fixed: int = 0
    show_suppressed: bool = False

    def findings(self) -> Iterator[tuple[Finding, Source | None]]:
        """What counts, in the order of files and text."""
        for result in self.results:
            for finding in result.findings:
                yield finding, result.source

    def shown(self, suppressed: bool = False) -> Iterator[tuple[Finding, Source | None]]:
        """What is printed, with what is suppressed where that is wanted."""
        for result in self.results:
            found = [*result.findings, *(result.suppressed if suppressed or self.show_suppressed else ())]
            for finding in sorted(found, key=lambda finding: (finding.start, finding.end, finding.code)):
                yield finding, result.source

    def of_failures(self) -> Outcome:
        """Without the findings that are about the code."""
        failed = (tuple(f for f in result.findings if is_failure(f.code)) for result in self.results)
        return replace(self, results=[replace(r, findings=f, suppressed=()) for r, f in zip(self.results, failed)])

    def is_fixable(self, finding: Finding) -> bool:
        if finding.suppressed is not None or finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
            return False
        return self.unsafe or finding.fix.applicability is Applicability.SAFE


def render(output_format: str, outcome: Outcome, color: bool = False) -> str:
    """The whole output, ending in a newline unless it is empty."""
    module = importlib.import_module(f"{__name__}.{output_format.replace('-', '_')}")
    text: str = module.render(outcome, color)
    return text


def place(finding: Finding) -> str:
    """path:line:column, in a notebook path:cell N:line:column."""
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return f"{finding.path}:{cell}{finding.line}:{finding.column}"


def why_suppressed(finding: Finding) -> str:
    """A note behind the message of a finding that does not count, "" for any other."""
    if finding.suppressed is None:
        return ""
    reason = f": {finding.suppressed.reason}" if finding.suppressed.reason else ""
    return (
        f" (suppressed by {'a comment' if finding.suppressed.by is SuppressedBy.COMMENT else 'the baseline'}{reason})"
    )


def in_cell(finding: Finding) -> str:
    """The message, in a notebook with its place, for formats that know only files and lines."""
    return finding.message if finding.cell is None else f"Cell {finding.cell}, line {finding.line}: {finding.message}"


def summary(outcome: Outcome, done: str = "Fixed") -> str:
    """One line: what is left, and what would fix it."""
    found = [finding for finding, _ in outcome.findings()]
    fixed = f"{done} {count(outcome.fixed, 'finding')}. " if outcome.fixed else ""
    beside = _in_baseline(outcome)
    if not found:
        return f"{fixed}Checked {count(outcome.checked, 'file')}, found nothing{' more' if fixed else ''}{beside}."
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
    number = count(len(found), "finding")
    return f"{fixed}Found {number} {left}in {files} of {count(outcome.checked, 'file')}{hint}{beside}."


def _in_baseline(outcome: Outcome) -> str:
    suppressed = [f.suppressed for result in outcome.results for f in result.suppressed if f.suppressed is not None]
    number = sum(one.by is SuppressedBy.BASELINE for one in suppressed)
    return f" besides the {number} in the baseline" if number else ""


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`"""
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
