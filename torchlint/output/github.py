"""Workflow commands that GitHub shows as annotations, the most severe first since it shows ten of a kind per step, and
a table in the step's summary."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from torchlint.finding import Finding, Severity
from torchlint.output import Outcome, place

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_RANK = list(_COMMAND)
_MOST_ROWS = 500  # a summary of more than a megabyte is refused


def render(outcome: Outcome, color: bool) -> str:
    return "".join(_annotation(finding) for finding in _ranked(outcome))


def append_to_step_summary(outcome: Outcome) -> None:
    """A table in the file that the runner names, if it names one."""
    target, found = os.environ.get("GITHUB_STEP_SUMMARY"), _ranked(outcome)
    if target and found:
        with open(target, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(_table(found))


def _ranked(outcome: Outcome) -> list[Finding]:
    return sorted((finding for finding, _ in outcome.findings()), key=lambda f: _RANK.index(f.severity))


def _annotation(finding: Finding) -> str:
    properties = {"title": f"torchlint ({finding.code})", "file": _in_workspace(finding.path)}
    message = finding.message
    if finding.cell is None:
        properties |= {"line": str(finding.line), "col": str(finding.column), "endLine": str(finding.end_line)}
        properties["endColumn"] = str(finding.end_column)
    else:
        message = f"cell {finding.cell}, line {finding.line}: {message}"
    listed = ",".join(f"{key}={_escaped(value, property=True)}" for key, value in properties.items())
    return f"::{_COMMAND[finding.severity]} {listed}::{_escaped(f'{finding.code} {message}')}\n"


def _in_workspace(path: str) -> str:
    """The path as GitHub looks for it: from the top of the checkout, wherever in it torchlint runs."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if not workspace:
        return path
    below = os.path.relpath(path, workspace)
    return path if below.startswith("..") else Path(below).as_posix()


def _escaped(text: str, property: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property else text


def _table(findings: Sequence[Finding]) -> str:
    rows = ["### torchlint", "", "| | rule | where | message |", "|---|---|---|---|"]
    for finding in findings[:_MOST_ROWS]:
        message = finding.message.replace("|", "\\|").replace("\n", " ")
        rows.append(f"| {finding.severity.value} | {finding.code} | `{place(finding)}` | {message} |")
    more = len(findings) - _MOST_ROWS
    return "\n".join([*rows, *(["", f"... and {more} more."] if more > 0 else [])]) + "\n\n"
