"""Reviewdog's diagnostic format; a fix becomes a suggestion, which a review offers as a change to click.

Columns count bytes of UTF-8. A suggestion stands alone, so it has the whole of a fix, with what is between its edits.
"""

from __future__ import annotations

import json
from typing import Any

from torchlint.finding import Applicability, Finding, Fix, Severity
from torchlint.output import Outcome, in_cell
from torchlint.source import Source, splice

_SEVERITY = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}
_MOST_LINES = 30


def render(outcome: Outcome, color: bool) -> str:
    document = {
        "source": {"name": "torchlint"},
        "severity": "WARNING",
        "diagnostics": [_diagnostic(finding, source) for finding, source in outcome.findings()],
    }
    return json.dumps(document, indent=2) + "\n"


def _diagnostic(finding: Finding, source: Source | None) -> dict[str, Any]:
    location: dict[str, Any] = {"path": finding.path}
    if finding.cell is None:
        location["range"] = _range(finding.start, finding.end, source)
    diagnostic: dict[str, Any] = {
        "message": in_cell(finding),
        "location": location,
        "severity": _SEVERITY[finding.severity],
        "code": {"value": finding.code},
    }
    suggestion = _suggestion(finding.fix, source) if finding.cell is None else None
    return diagnostic | ({"suggestions": [suggestion]} if suggestion else {})


def _suggestion(fix: Fix | None, source: Source | None) -> dict[str, Any] | None:
    if fix is None or source is None or not fix.edits or fix.elsewhere or fix.applicability is Applicability.DISPLAY:
        return None
    start, end = fix.edits[0].start, max(edit.end for edit in fix.edits)
    if source.line_number(end) - source.line_number(start) >= _MOST_LINES:
        return None
    text = splice(source.text[:end], fix.edits)[start:]
    return {"range": _range(start, end, source), "text": text}


def _range(start: int, end: int, source: Source | None) -> dict[str, Any]:
    return {"start": _position(start, source), "end": _position(end, source)}


def _position(offset: int, source: Source | None) -> dict[str, int]:
    if source is None:
        return {"line": 1}
    number = source.line_number(offset)
    before = source.text[source.line_starts[number - 1] : offset]
    return {"line": number, "column": len(before.encode("utf-8", "replace")) + 1}
