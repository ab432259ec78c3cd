"""What torchlint says about its own work: the family LINT, which no rule module stands for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchlint.finding import Confidence, Finding, Severity


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """`is_failure`: the tool could not do what it was asked, so the exit code is 2 and the code cannot be ignored."""

    code: str
    name: str
    severity: Severity
    is_failure: bool
    page: str


SYNTAX_ERROR = Diagnostic(
    "LINT01",
    "syntax-error",
    Severity.ERROR,
    False,
    "The file is not Python that can be parsed, so no rule ran on it. The other files are linted all the same.",
)
UNREADABLE_FILE = Diagnostic(
    "LINT02",
    "unreadable-file",
    Severity.ERROR,
    True,
    "The file could not be read or written: missing permission, a directory that went away, a full disk.",
)
UNUSED_SUPPRESSION = Diagnostic(
    "LINT03",
    "unused-suppression",
    Severity.WARNING,
    False,
    "A suppression comment names a rule that finds nothing there, or that does not exist. Judged only for rules that "
    "ran. The fix removes the code from the comment, or the comment.",
)
INTERNAL_ERROR = Diagnostic(
    "LINT04",
    "internal-error",
    Severity.ERROR,
    True,
    "A rule, a fixer or the engine crashed on the file. The other rules and files go on. This is a bug of torchlint.",
)
TOO_COMPLEX = Diagnostic(
    "LINT05",
    "file-not-analysed",
    Severity.WARNING,
    False,
    "The file is nested too deeply or too large, or its syntax tree does not print as the text that it came from, so "
    "that no position in it can be trusted. No rule ran on it.",
)
FIX_ROLLED_BACK = Diagnostic(
    "LINT06",
    "fix-rolled-back",
    Severity.ERROR,
    True,
    "Fixes left text that does not parse, or turned in a circle. The file is as it was. This is a bug of torchlint.",
)

DIAGNOSTICS = {
    diagnostic.code: diagnostic
    for diagnostic in (
        SYNTAX_ERROR,
        UNREADABLE_FILE,
        UNUSED_SUPPRESSION,
        INTERNAL_ERROR,
        TOO_COMPLEX,
        FIX_ROLLED_BACK,
    )
}


def is_failure(code: str) -> bool:
    """Whether it says that a file could not be checked or written, and nothing of the code in it."""
    return code in DIAGNOSTICS and DIAGNOSTICS[code].is_failure


def diagnose(kind: Diagnostic, message: str, path: Path) -> Finding:
    """A finding about the file as a whole."""
    return Finding(kind.code, kind.name, kind.severity, Confidence.CERTAIN, message, path.as_posix(), 0, 0, 1, 1, 1, 1)
