"""A JSON list of findings. Lines and columns are 1-based and count characters, in a notebook within the cell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from torchlint.finding import Edit, Finding, Fix, Step, Suppressed
from torchlint.output import Outcome
from torchlint.source import Source


def render(outcome: Outcome, color: bool) -> str:
    entries = [entry(finding, source) for finding, source in outcome.shown()]
    return json.dumps(entries, indent=2) + "\n"


def entry(finding: Finding, source: Source | None) -> dict[str, Any]:
    """A finding as an object of the JSON formats."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "path": finding.path,
        "cell": finding.cell,
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.end_line,
        "end_column": finding.end_column,
        "function": finding.function,
        "url": None,
        "chain": [_step(step) for step in finding.chain],
        "fix": None if finding.fix is None or source is None else _fix(finding.fix, source),
        "no_fix": finding.no_fix or None,
        "suppressed": None if finding.suppressed is None else _suppressed(finding.suppressed),
    }


def _suppressed(suppressed: Suppressed) -> dict[str, str]:
    return {"by": suppressed.by.value, "reason": suppressed.reason}


def _step(step: Step) -> dict[str, Any]:
    return {
        "message": step.message,
        "cell": step.cell,
        "line": step.line,
        "column": step.column,
        "end_line": step.end_line,
        "end_column": step.end_column,
    }


def _fix(fix: Fix, source: Source) -> dict[str, Any]:
    """The edits of the file of the finding, and of each other file that the fix changes with it."""
    elsewhere = [
        {"path": other.source.path.as_posix(), "edits": _edits(other.edits, other.source)} for other in fix.elsewhere
    ]
    return {
        "applicability": fix.applicability.value,
        "why": fix.why,
        "edits": _edits(fix.edits, source),
        "elsewhere": elsewhere,
    }


def _edits(edits: Sequence[Edit], source: Source) -> list[dict[str, Any]]:
    entries = []
    for edit in edits:
        cell, line, column = source.locate(edit.start)
        _, end_line, end_column = source.locate(edit.end)
        place = {"line": line, "column": column, "end_line": end_line, "end_column": end_column}
        entries.append(({"cell": cell} if cell is not None else {}) | place | {"text": edit.text})
    return entries
