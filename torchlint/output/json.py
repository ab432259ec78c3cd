"""A JSON list of findings. Lines and columns are 1-based and count characters, in a notebook within the cell."""

from __future__ import annotations

import json
from typing import Any

from torchlint.finding import Finding, Fix, Step
from torchlint.output import Outcome
from torchlint.source import Source


def render(outcome: Outcome, color: bool) -> str:
    entries = [entry(finding, source) for finding, source in outcome.findings()]
    return json.dumps(entries, indent=2) + "\n"


def entry(finding: Finding, source: Source | None) -> dict[str, Any]:
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
    }


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
    edits = []
    for edit in fix.edits:
        cell, line, column = source.locate(edit.start)
        _, end_line, end_column = source.locate(edit.end)
        place = {"line": line, "column": column, "end_line": end_line, "end_column": end_column}
        edits.append(({"cell": cell} if cell is not None else {}) | place | {"text": edit.text})
    return {"applicability": fix.applicability.value, "why": fix.why, "edits": edits}
