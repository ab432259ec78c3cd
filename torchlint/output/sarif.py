"""SARIF 2.1.0, with addresses from the top of the repository, fingerprints that survive moved lines, and fixes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torchlint import __version__
from torchlint.diagnostics import DIAGNOSTICS
from torchlint.finding import FileEdits, Finding, Fix, Severity, Step, Suppressed, SuppressedBy
from torchlint.output import Outcome, in_cell
from torchlint.output.fingerprint import Fingerprints
from torchlint.output.source_root import SourceRoot
from torchlint.rule import all_rules
from torchlint.source import Source

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_SOURCE_ROOT = "The top of the repository, or the folder that torchlint ran in where that is in no repository."
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(outcome: Outcome, color: bool) -> str:
    found = list(outcome.shown(suppressed=True))
    codes = sorted({finding.code for finding, _ in found})
    driver = {"name": "torchlint", "version": __version__, "rules": [_rule(code) for code in codes]}
    root = SourceRoot.of_working_directory()
    fingerprints = Fingerprints(root)
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": _SOURCE_ROOT}}},
        "results": [
            _result(finding, source, root, codes.index(finding.code), fingerprints.of(finding))
            for finding, source in found
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    if code in DIAGNOSTICS:
        name, page, severity = DIAGNOSTICS[code].name, DIAGNOSTICS[code].page, DIAGNOSTICS[code].severity
    else:
        rule = all_rules()[code]
        name, page, severity = rule.name, rule.page(), rule.default_severity()
    return {
        "id": code,
        "name": name,
        "shortDescription": {"text": page.splitlines()[0]},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVEL[severity]},
    }


def _result(
    finding: Finding, source: Source | None, root: SourceRoot, rule_index: int, fingerprint: str
) -> dict[str, Any]:
    message = in_cell(finding)
    location: dict[str, Any] = {"artifactLocation": _artifact(finding.path, root)}
    if finding.cell is None:
        location["region"] = _region(finding.line, finding.column, finding.end_line, finding.end_column)
    entry: dict[str, Any] = {"physicalLocation": location}
    if finding.function is not None:
        entry["logicalLocations"] = [{"fullyQualifiedName": finding.function, "kind": "function"}]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": _LEVEL[finding.severity],
        "message": {"text": message},
        "locations": [entry],
        "partialFingerprints": {"torchlint/v1": fingerprint},
        "suppressions": [] if finding.suppressed is None else [_suppression(finding.suppressed)],
        "properties": {"confidence": finding.confidence.value} | ({"noFix": finding.no_fix} if finding.no_fix else {}),
    }
    if finding.chain:
        flow = [
            *(_flow_location(step, finding.path, root) for step in finding.chain),
            {"location": {**entry, "message": {"text": message}}},
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if finding.fix is not None and source is not None and finding.cell is None:
        result["fixes"] = [_fix(finding.fix, source, root)]
    return result


def _suppression(suppressed: Suppressed) -> dict[str, str]:
    kind = {"kind": "inSource" if suppressed.by is SuppressedBy.COMMENT else "external"}
    return kind | ({"justification": suppressed.reason} if suppressed.reason else {})


def _flow_location(step: Step, path: str, root: SourceRoot) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": _artifact(path, root)}
    if step.cell is None:
        location["region"] = _region(step.line, step.column, step.end_line, step.end_column)
    text = step.message if step.cell is None else f"Cell {step.cell}, line {step.line}: {step.message}"
    return {"location": {"physicalLocation": location, "message": {"text": text}}}


def _artifact(path: str, root: SourceRoot) -> dict[str, str]:
    below = root.path(path)
    if os.path.isabs(below):
        return {"uri": Path(below).as_uri()}
    return {"uri": quote(os.fsencode(below)), "uriBaseId": "%SRCROOT%"}


def _region(line: int, column: int, end_line: int, end_column: int) -> dict[str, int]:
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(fix: Fix, source: Source, root: SourceRoot) -> dict[str, Any]:
    description = f"{fix.applicability.value} fix" + (f": {fix.why}" if fix.why else "")
    files = [*([FileEdits(source, fix.edits)] if fix.edits else []), *fix.elsewhere]
    return {"description": {"text": description}, "artifactChanges": [_change(file, root) for file in files]}


def _change(file: FileEdits, root: SourceRoot) -> dict[str, Any]:
    replacements = []
    for edit in file.edits:
        _, line, column = file.source.locate(edit.start)
        _, end_line, end_column = file.source.locate(edit.end)
        deleted = _region(line, column, end_line, end_column)
        replacements.append({"deletedRegion": deleted, "insertedContent": {"text": edit.text}})
    return {"artifactLocation": _artifact(file.source.path.as_posix(), root), "replacements": replacements}
