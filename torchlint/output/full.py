"""The offending lines with a caret below, and the fix as a small diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from torchlint.finding import Applicability, Edit, Finding, Step
from torchlint.output import Outcome, place, why_suppressed
from torchlint.output.changes import hunks
from torchlint.source import Source
from torchlint.terminal import paint, printable, width

_Place: TypeAlias = tuple[Path, int, tuple[str, ...]]  # of a change: the file, the offset and the lines that are new

_MOST_LINES = 4
_SEVERITY_COLOR = {"error": "red", "warning": "yellow", "info": "blue"}


def render(outcome: Outcome, color: bool) -> str:
    """What a fix changes away from its finding is printed once, where several fixes share it."""
    shown: set[_Place] = set()
    blocks = ("\n".join(_block(finding, source, outcome, shown, color)) for finding, source in outcome.shown())
    return "".join(f"{block}\n\n" for block in blocks)


def question(finding: Finding, source: Source, color: bool) -> str:
    """A finding as `render` has it."""
    return "\n".join(_block(finding, source, Outcome((), 1, unsafe=True), set(), color))


def _block(finding: Finding, source: Source | None, outcome: Outcome, shown: set[_Place], color: bool) -> Iterator[str]:
    message = finding.message + why_suppressed(finding)
    mark = paint(" [*]", color, "cyan") if outcome.is_fixable(finding) else ""
    code = paint(finding.code, color, _SEVERITY_COLOR[finding.severity.value], bold=True)
    yield f"{paint(printable(place(finding)), color, bold=True)}: {code}{mark} {printable(message)}"
    if source is None:
        return
    lines = source.line_number(finding.end) - source.line_number(finding.start) + 1
    gutter = len(str(finding.line + min(lines, _MOST_LINES)))
    bar = paint("|", color, "blue")
    yield f"{'':{gutter}} {bar}"
    yield from _excerpt(finding, source, gutter, color)
    for step in finding.chain:
        yield f"{'':{gutter}} {paint('=', color, 'blue')} {_line_of(step, finding)}: {printable(step.message)}"
    yield f"{'':{gutter}} {paint('=', color, 'blue')} {_about(finding)}"
    yield from _change(finding, source, shown, gutter, color)


def _excerpt(finding: Finding, source: Source, gutter: int, color: bool) -> Iterator[str]:
    bar = paint("|", color, "blue")
    first, last = source.line_number(finding.start), source.line_number(finding.end)
    for number in range(first, min(last, first + _MOST_LINES - 1) + 1):
        line, start = source.line(number), source.line_starts[number - 1]
        indent = len(line) - len(line.lstrip())
        begin = max(finding.start - start, indent) if number == first else indent
        end = min(finding.end - start, len(line)) if number == last else len(line)
        yield f"{finding.line + number - first:>{gutter}} {bar} {printable(line)}".rstrip()
        carets = "^" * max(1, width(printable(line[begin:end])))
        yield f"{'':{gutter}} {bar} {' ' * width(printable(line[:begin]))}{paint(carets, color, 'red', bold=True)}"
    if last - first >= _MOST_LINES:
        yield f"{'':{gutter}} {bar} ... {last - first + 1 - _MOST_LINES} more lines"


def _line_of(step: Step, finding: Finding) -> str:
    return f"line {step.line}" if step.cell == finding.cell else f"cell {step.cell}, line {step.line}"


def _about(finding: Finding) -> str:
    about = f"{finding.name}, {finding.severity.value}"
    if finding.confidence.value != "certain":
        about += f", {finding.confidence.value}"
    if finding.fix is None:
        return f"{about}, no fix: {printable(finding.no_fix)}" if finding.no_fix else about
    kind = {
        Applicability.SAFE: "safe fix",
        Applicability.UNSAFE: "unsafe fix",
        Applicability.DISPLAY: "suggestion, never applied",
    }[finding.fix.applicability]
    why = f" ({printable(finding.fix.why.rstrip('.'))})" if finding.fix.why else ""
    return f"{about}, {kind}{why}:"


def _change(finding: Finding, source: Source, shown: set[_Place], gutter: int, color: bool) -> Iterator[str]:
    if finding.fix is None:
        return
    own = range(finding.line, finding.line + source.line_number(finding.end) - source.line_number(finding.start) + 1)
    yield from _lines(source, finding.fix.edits, own, shown, gutter, color)
    for other in finding.fix.elsewhere:
        path = printable(other.source.path.as_posix())
        yield f"{'':{gutter}} {paint('=', color, 'blue')} in {paint(path, color, bold=True)}:"
        yield from _lines(other.source, other.edits, range(0), shown, gutter, color)


def _lines(
    source: Source, edits: Sequence[Edit], own: range, shown: set[_Place], gutter: int, color: bool
) -> Iterator[str]:
    for hunk in hunks(source, edits):
        place = (source.path, hunk.offset, tuple(hunk.added))
        if place in shown and hunk.line not in own:
            yield f"{'':{gutter}} {paint('=', color, 'blue')} line {hunk.line}: changed as above"
            continue
        shown.add(place)
        for number, line in enumerate(hunk.removed, hunk.line):
            yield f"{number:>{gutter}} {paint(f'- {printable(line)}', color, 'red')}".rstrip()
        for number, line in enumerate(hunk.added, hunk.line):
            yield f"{number:>{gutter}} {paint(f'+ {printable(line)}', color, 'green')}".rstrip()
