"""Every rule is held to its own page: the example is found once, its replacement is silent, the fix leads there."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
import torchlint.fixers

import torchlint.rule
from tests import measured
from tests.support import findings, fixed
from torchlint.rule import FAMILY_SEVERITY, Rule, all_rules, fixer_for

RULES = list(all_rules().values())
SECTIONS = [
    "What it does",
    "Why is this bad",
    "Example",
    "Use instead",
    "Fix safety",
    "Measured effect",
    "References",
]
every_rule = pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])


def page(rule: type[Rule]) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", inspect.getdoc(rule) or "", flags=re.MULTILINE)
    return {"": parts[0].strip(), **{name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}}


def block(rule: type[Rule], section: str) -> str:
    blocks = re.findall(r"```python\n(.*?)```", page(rule)[section], flags=re.DOTALL)
    assert len(blocks) == 1, f"{section} of {rule.code} has {len(blocks)} code blocks"
    return str(blocks[0])


def test_there_are_rules_and_none_share_a_code_or_a_name() -> None:
    assert len(RULES) >= 14
    assert len({rule.name for rule in RULES}) == len(RULES)


@every_rule
def test_facts(rule: type[Rule]) -> None:
    assert re.fullmatch(r"[A-Z]+\d\d", rule.code)
    assert rule.family() in FAMILY_SEVERITY
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert rule.triggers
    assert rule.__module__ == f"torchlint.rules.{rule.family().lower()}.{rule.name.replace('-', '_')}"


@every_rule
def test_page_has_every_section_and_begins_with_one_sentence(rule: type[Rule]) -> None:
    found = page(rule)
    assert list(found) == ["", *SECTIONS]
    assert all(found.values())
    assert found[""].endswith(".")
    assert "\n" not in found[""]


@every_rule
def test_the_measured_effect_is_what_the_evidence_says(rule: type[Rule]) -> None:
    assert page(rule)["Measured effect"] == measured.page(rule.code), "run: python -m tests.measured"


@every_rule
def test_the_example_is_found_exactly_once_and_by_this_rule(rule: type[Rule]) -> None:
    assert [finding.code for finding in findings(block(rule, "Example"), rule.code)] == [rule.code]


@every_rule
def test_what_to_use_instead_is_silent(rule: type[Rule]) -> None:
    assert findings(block(rule, "Use instead"), rule.code) == []


@every_rule
def test_the_fix_turns_the_example_into_what_to_use_instead(rule: type[Rule]) -> None:
    if fixer_for(rule.code) is None:
        assert findings(block(rule, "Example"), rule.code)[0].fix is None
    else:
        assert fixed(block(rule, "Example"), rule.code) == block(rule, "Use instead")


@every_rule
def test_the_example_passes_the_gate_of_its_own_rule(rule: type[Rule]) -> None:
    code = block(rule, "Example")
    assert any(word in code for word in rule.triggers)


def test_every_fixer_belongs_to_a_rule() -> None:
    root = Path(torchlint.rule.__file__).parent.parent
    fixers = {path.relative_to(root / "fixers") for path in (root / "fixers").glob("*/[!_]*.py")}
    rules = {path.relative_to(root / "rules") for path in (root / "rules").glob("*/[!_]*.py")}
    assert fixers
    assert fixers <= rules


FIXERS = [rule for rule in RULES if fixer_for(rule.code) is not None]


@pytest.mark.parametrize("rule", FIXERS, ids=[rule.code for rule in FIXERS])
def test_a_fixer_makes_a_fix_or_says_why_not(rule: type[Rule]) -> None:
    fixer = fixer_for(rule.code)
    assert fixer is not None
    assert inspect.get_annotations(fixer)["return"] == "Fix"


def _reasons() -> list[ast.expr]:
    """What is given to NoFixError anywhere."""
    modules = (torchlint.rule, torchlint.fixers)
    files = {file for module in modules for file in Path(module.__file__ or "").parent.rglob("*.py")}
    calls = [node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "NoFixError"]


def test_reasons_against_a_fix_are_clauses_of_one_line() -> None:
    reasons = _reasons()
    assert len(reasons) > 60
    for reason in reasons:
        parts = reason.values if isinstance(reason, ast.JoinedStr) else [reason]
        texts = [part.value for part in parts if isinstance(part, ast.Constant)]
        if not texts:  # it comes from the model
            continue
        first, last = str(texts[0]), str(texts[-1])
        assert re.match(r"[a-z`]|Python ", first), first
        assert not last.endswith("."), last
        assert "\n" not in "".join(map(str, texts))
