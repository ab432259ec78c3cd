"""What counts of the findings of one file: changed lines, and statements that no baseline has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import PlantedRule
from tests.test_notebook import notebook
from torchlint.config import Settings
from torchlint.engine import examine, lint
from torchlint.filters.scope import Changes, Scope, changed_lines, digest, key_of
from torchlint.fixing.passes import fix_source
from torchlint.rule import Fact, Report, Rule
from torchlint.source import Source

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

SAME = [
    pytest.param("x = f(a, b)", "x = f(\n    a,\n    b,\n)  # why", id="layout, comment and final comma"),
    pytest.param("x = a + b", "x = (a + b)", id="parentheses"),
    pytest.param("x = 'a'", 'x = "a"', id="quotes"),
    pytest.param("x = a + \\\n    b", "x=a+b", id="continued line"),
]
OTHER = [
    pytest.param("x = f(a)", "x = f(b)", id="another name"),
    pytest.param("x = 'a b'", "x = 'ab'", id="spaces inside of a string"),
    pytest.param("return a", "returna", id="words that run together"),
    pytest.param("x = '# a'", "x = '# b'", id="what looks like a comment"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_layout_leaves_a_statement_as_it_is(first: str, second: str) -> None:
    assert digest(first) == digest(second)


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_code_does_not(first: str, second: str) -> None:
    assert digest(first) != digest(second)


@pytest.mark.parametrize(
    ("before", "after", "changed", "touched"),
    [
        pytest.param("abc", "abc", set(), set(), id="nothing"),
        pytest.param("abc", "abXc", {3}, {3}, id="a new line"),
        pytest.param("abc", "aXc", {2}, {2}, id="a rewritten line"),
        pytest.param("abcd", "abd", set(), {2, 3}, id="a deleted line touches its neighbours"),
        pytest.param("", "ab", {1, 2}, {1, 2}, id="an empty file before"),
        pytest.param("aab", "aaab", {3}, {3}, id="equal lines"),
    ],
)
def test_changed_lines(before: str, after: str, changed: set[int], touched: set[int]) -> None:
    lines = changed_lines(before, after)
    assert (lines.changed, lines.touched) == (changed, touched)


BASE = """\
import torch
a = torch.zeros(1)
b = 2
c = torch.zeros(3)
"""


def found(text: str, base: str | None, settings: Settings) -> list[int]:
    changes = Changes(text.encode(), None if base is None else base.encode())
    scoped = Settings(settings.selection, scope=Scope(changes))
    return [finding.line for finding in lint(Source.from_text(text), scoped)]


def test_findings_of_unchanged_lines_do_not_count(planted: PlantedRule) -> None:
    after = BASE.replace("a = ", "x = 1\na =  ")
    assert found(after, BASE, planted.settings) == [3]
    assert found(after, after, planted.settings) == []
    assert found(after.replace("\n", "\r\n"), after, planted.settings) == []
    assert found(after, None, planted.settings) == [3, 5]


def test_every_line_of_a_finding_counts(planted: PlantedRule) -> None:
    before = "import torch\nx = torch.zeros(\n    1,\n)\n"
    assert found(before.replace("    1", "    2"), before, planted.settings) == [2]


def test_a_change_of_what_a_finding_rests_on_counts(planted: PlantedRule) -> None:
    def check(rule: Rule, model: Model) -> Iterator[Report]:
        call = next(call for call in model.calls if call.callee == "torch.zeros")
        yield Report(call.node, "Zeros.", chain=(Fact(model.module.body[1], "Two."),))  # type: ignore[attr-defined]

    planted.check_with(check)
    before = "import torch\nn = 2\nx = torch.zeros(n)\n"
    assert found(before.replace("2", "3"), before, planted.settings) == [3]
    assert found(before + "y = 1\n", before, planted.settings) == []


FUNCTION = """\
import torch
def f():
    a = 1
    b = 2
    return torch.zeros(a)
def g():
    return 3
"""


@pytest.mark.parametrize(
    ("after", "whole", "line"),
    [
        pytest.param(FUNCTION.replace("a = 1", "a = 4"), [5], [], id="a line of the function"),
        pytest.param(FUNCTION.replace("    b = 2\n", ""), [4], [], id="a deleted line of the function"),
        pytest.param(FUNCTION.replace("return 3", "return 4"), [], [], id="a line of another function"),
        pytest.param(FUNCTION.replace("zeros(a)", "zeros(b)"), [5], [5], id="the line itself"),
    ],
)
def test_a_rule_that_speaks_of_the_function_counts_where_the_function_changed(
    after: str, whole: list[int], line: list[int], planted: PlantedRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(after, FUNCTION, planted.settings) == line
    monkeypatch.setattr(planted.rule, "whole_function", True)
    assert found(after, FUNCTION, planted.settings) == whole


def test_outside_of_functions_the_statement_of_the_module_counts(
    planted: PlantedRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted.rule, "whole_function", True)
    before = "import torch\nfor i in range(3):\n    x = 1\n    torch.zeros(i)\ny = 2\n"
    assert found(before.replace("x = 1", "x = 2"), before, planted.settings) == [4]
    assert found(before.replace("y = 2", "y = 3"), before, planted.settings) == []


def test_a_syntax_error_counts_where_the_file_changed(planted: PlantedRule) -> None:
    broken = BASE + "torch.zeros(\n"
    assert found(broken + "x = 1\n", broken, planted.settings) != []
    assert found(broken, broken, planted.settings) == []


def test_cells_of_notebooks_are_compared_without_their_outputs(planted: PlantedRule) -> None:
    before, after = (
        notebook("import torch", "torch.zeros(1)"),
        notebook("import torch", "torch.zeros(1)", "torch.zeros(2)"),
    )
    source = Source.from_bytes(after, Path("a.ipynb"))
    scoped = Settings(planted.settings.selection, scope=Scope(Changes(after, before)))
    assert [finding.cell for finding in lint(source, scoped)] == [lint(source, planted.settings)[-1].cell]


def test_only_findings_that_count_are_fixed_in_any_pass(planted: PlantedRule) -> None:
    after = BASE.replace("b = 2", "b = torch.zeros(2)")
    scoped = Settings(planted.settings.selection, scope=Scope(Changes(after.encode(), BASE.encode())))
    fixed = fix_source(Source.from_text(after), scoped)
    assert fixed.source.text == after.replace("zeros(2)", "ones(2)")
    assert fixed.remaining == ()


def test_the_baseline_takes_a_statement_as_often_as_it_says(planted: PlantedRule) -> None:
    source = Source.from_text("import torch\n" + "x = torch.zeros(1)\n" * 3)
    key = key_of(lint(source, planted.settings)[0])
    examined = examine(source, Settings(planted.settings.selection, scope=Scope(accepted={key: 2})))
    assert [finding.line for finding in examined.findings] == [4]
    assert [(f.line, f.suppressed.by.value) for f in examined.suppressed if f.suppressed] == [
        (2, "baseline"),
        (3, "baseline"),
    ]
    assert source.text.count("zeros") == 3


def test_failures_always_count(planted: PlantedRule) -> None:
    def crash(rule: object, model: object) -> Iterator[Report]:
        raise ValueError("boom")

    planted.check_with(crash)
    assert [
        f.code
        for f in lint(Source.from_text(BASE), Settings(planted.settings.selection, scope=Scope(Changes(b"", b""))))
    ] == ["LINT04"]


def test_comments_say_why_they_suppress(planted: PlantedRule) -> None:
    text = "import torch\ntorch.zeros(1)  # torchlint: ignore[MEM01] it is small\ntorch.zeros(2)  # noqa\n"
    examined = examine(Source.from_text(text), planted.settings)
    assert [f.suppressed.reason for f in examined.suppressed if f.suppressed] == ["it is small", ""]
    assert examined.findings == []
