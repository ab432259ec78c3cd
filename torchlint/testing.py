"""What tests of rules and fixers need: findings of a piece of code, and the code after its fixes."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Finding
from torchlint.fixing.passes import fix_source
from torchlint.plugins import load
from torchlint.rule import Rule, all_rules
from torchlint.source import Source


def source_of(code: str, path: str = "module.py") -> Source:
    """The dedented code as a file."""
    return Source.from_text(dedent(code).removeprefix("\n"), Path(path))


def findings(code: str, *codes: str, path: str = "module.py") -> list[Finding]:
    """Findings of the given rules in the dedented code, in text order. A crash of a rule or of the model is raised, and
    code that does not parse fails the test."""
    found = lint(source_of(code, path), _only(codes), strict=True)
    problems = [finding.message for finding in found if finding.code.startswith("LINT")]
    assert not problems or any(code.startswith("LINT") for code in codes), problems
    return found


def fixed(code: str, *codes: str, unsafe: bool = True, path: str = "module.py") -> str:
    """The dedented code after all fixes of the given rules. A fix that is rolled back fails the test."""
    result = fix_source(source_of(code, path), _only(codes), unsafe=unsafe, strict=True)
    problems = [finding.message for finding in result.remaining if finding.code.startswith("LINT")]
    assert not problems, problems
    return result.source.text


def page_code(rule: type[Rule], section: str) -> str:
    """The one block of code in a section of a rule's page, such as `Example` or `Use instead`."""
    text = rule.page().partition(f"## {section}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return str(code)


def rule_under_test(code: str, test_file: str) -> type[Rule]:
    """The rule of a plugin: of its installed package, or else of the module that lies beside its test."""
    if code not in all_rules():
        test = Path(test_file).resolve()
        load(test.with_name(test.name.removeprefix("test_")))
    return all_rules()[code]


def _only(codes: tuple[str, ...]) -> Settings:
    plugins = {rule.plugin for rule in all_rules().values() if rule.plugin is not None}
    return Settings.selecting(*codes, plugins=tuple(sorted(plugins)))
