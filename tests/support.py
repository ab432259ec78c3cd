"""What tests of rules and fixers need: findings of a piece of code, and the code after its fixes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Finding
from torchlint.fixing import fix_source
from torchlint.source import Source


def source_of(code: str, path: str = "module.py") -> Source:
    return Source.from_text(dedent(code).removeprefix("\n"), Path(path))


def findings(code: str, *codes: str, path: str = "module.py") -> list[Finding]:
    """Findings of the given rules in the dedented code, in text order. A crash of a rule or of the model is raised, and
    code that does not parse fails the test."""
    found = lint(source_of(code, path), Settings.selecting(*codes), strict=True)
    problems = [finding.message for finding in found if finding.code.startswith("LINT")]
    assert not problems or any(code.startswith("LINT") for code in codes), problems
    return found


def fixed(code: str, *codes: str, unsafe: bool = True, path: str = "module.py") -> str:
    """The dedented code after all fixes of the given rules. A fix that is rolled back fails the test."""
    result = fix_source(source_of(code, path), Settings.selecting(*codes), unsafe=unsafe, strict=True)
    problems = [finding.message for finding in result.remaining if finding.code.startswith("LINT")]
    assert not problems, problems
    return result.source.text
