"""A Code Quality report of GitLab, with paths relative to the project that its runner checked out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from torchlint.finding import Finding, Severity
from torchlint.output import Outcome, in_cell
from torchlint.output.fingerprint import Fingerprints
from torchlint.output.source_root import SourceRoot

_SEVERITY = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "minor"}


def render(outcome: Outcome, color: bool) -> str:
    fingerprints = Fingerprints(SourceRoot.of_working_directory())
    entries = [_entry(finding, fingerprints.of(finding)) for finding, _ in outcome.findings()]
    return json.dumps(entries, indent=2) + "\n"


def _entry(finding: Finding, fingerprint: str) -> dict[str, Any]:
    lines = {"begin": finding.line, "end": finding.end_line} if finding.cell is None else {"begin": 1}
    return {
        "description": f"{finding.code} {in_cell(finding)}",
        "check_name": finding.name,
        "fingerprint": fingerprint,
        "severity": _SEVERITY[finding.severity],
        "location": {"path": _path(finding.path), "lines": lines},
    }


def _path(path: str) -> str:
    root, absolute = os.environ.get("CI_PROJECT_DIR"), Path(path).absolute()
    return absolute.relative_to(root).as_posix() if root and absolute.is_relative_to(root) else path
