"""JUnit's XML: a suite for each file, and a failed test for each finding; one that passes where there is none, since
readers take a report without tests for a mistake."""

from __future__ import annotations

from itertools import groupby
from xml.etree import ElementTree

from torchlint.finding import Finding
from torchlint.output import Outcome, in_cell, place
from torchlint.terminal import printable


def render(outcome: Outcome, color: bool) -> str:
    found = [finding for finding, _ in outcome.findings()]
    total = str(len(found))
    root = ElementTree.Element(
        "testsuites", name="torchlint", tests=str(max(1, len(found))), failures=total, errors="0"
    )
    for path, group in groupby(found, lambda finding: finding.path):
        _add_suite(root, path, list(group))
    if not found:
        suite = ElementTree.SubElement(root, "testsuite", name="torchlint", tests="1", failures="0", errors="0")
        ElementTree.SubElement(suite, "testcase", name="No findings", classname="torchlint")
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add_suite(root: ElementTree.Element, path: str, findings: list[Finding]) -> None:
    number = str(len(findings))
    suite = ElementTree.SubElement(
        root, "testsuite", name=printable(path), tests=number, failures=number, errors="0", package="torchlint"
    )
    for finding in findings:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            name=f"{finding.code} {finding.name} {finding.line}:{finding.column}",
            classname=printable(path),
            file=printable(path),
            line=str(finding.line),
        )
        failure = ElementTree.SubElement(case, "failure", message=printable(finding.message))
        failure.set("type", finding.severity.value)
        failure.text = printable(f"{place(finding)}: {finding.code} {in_cell(finding)}")
