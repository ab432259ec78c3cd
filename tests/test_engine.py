"""The way of one file: the gate, what goes wrong, and what a finding says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import libcst
import pytest

from tests.conftest import PlantedRule, rename_to
from tests.support import source_of
from tests.test_notebook import notebook
from torchlint import engine, parsing
from torchlint.config import Selection, Settings
from torchlint.engine import lint
from torchlint.finding import Applicability, Edit, Fix, Severity
from torchlint.rule import Report, Rule
from torchlint.semantics.model import Model
from torchlint.semantics.spans import SourceMismatchError
from torchlint.source import Source, is_worth_linting


def codes(text: str, settings: Settings) -> list[str]:
    return [finding.code for finding in lint(Source.from_text(text), settings)]


def test_a_finding_says_where_and_what(planted: PlantedRule) -> None:
    source = source_of("""
        import torch
        class Trainer:
            def fit(self):
                return f(torch.zeros(
                    3))
        """)
    (found,) = lint(source, planted.settings)
    assert (found.code, found.name, found.path) == ("MEM01", planted.rule.name, "module.py")
    assert (found.line, found.column, found.end_line, found.end_column) == (4, 18, 5, 15)
    assert found.function == "Trainer.fit"
    assert source.text[found.start : found.end] == "torch.zeros(\n            3)"
    assert found.fix == Fix((Edit(found.start, found.start + 11, "torch.ones"),), Applicability.SAFE)


@pytest.mark.parametrize(
    ("around", "count"),
    [
        ("if False:", 0),
        ("if step and 0:", 0),
        ("if not step or False:", 1),
        ("if step and True:", 1),
        ("if True:\n    print()\nelse:", 0),
        ("while step:\n    if True:\n        continue", 0),
        ("while step:\n    if 0:\n        continue", 1),
    ],
)
def test_what_never_runs_is_let_alone(planted: PlantedRule, around: str, count: int) -> None:
    source = Source.from_text(f"import torch\nstep = len(sys.argv)\n{around}\n    torch.zeros(3)\n")
    assert len(lint(source, planted.settings)) == count


def test_a_finding_in_a_notebook_names_the_cell(planted: PlantedRule) -> None:
    source = Source.from_bytes(notebook("import torch", ["!ls\n", "torch.zeros(3)"]), Path("a.ipynb"))
    (found,) = lint(source, planted.settings)
    assert (found.cell, found.line, found.column, found.function) == (2, 2, 1, None)
    assert found.fix is not None


def test_a_fix_that_would_cross_cells_is_left_out(planted: PlantedRule) -> None:
    planted.fix_with(lambda report, model: Fix((Edit(0, 20, ""),), Applicability.SAFE))
    source = Source.from_bytes(notebook("import torch", "torch.zeros(3)"), Path("a.ipynb"))
    assert [finding.fix for finding in lint(source, planted.settings)] == [None]


def test_a_compound_statement_is_marked_by_its_header(planted: PlantedRule) -> None:
    def loops(rule: Rule, model: Model) -> Iterator[Report]:
        yield from (Report(loop.node, "A loop.") for loop in model.loops)

    planted.check_with(loops)
    planted.fix_with(None)
    source = source_of("import torch\nfor x in torch.zeros(3):  # why\n    y = x\n    z = y\n")
    (found,) = lint(source, planted.settings)
    assert (found.line, found.end_line) == (2, 2)


def test_findings_come_in_the_order_of_the_text_and_once(planted: PlantedRule) -> None:
    def backwards(rule: Rule, model: Model) -> Iterator[Report]:
        for call in [*reversed(model.calls), *model.calls]:
            yield Report(call.node, "A call.")

    planted.check_with(backwards)
    planted.fix_with(None)
    found = lint(source_of("import torch\ntorch.zeros(1)\ntorch.zeros(2)\n"), planted.settings)
    assert [finding.line for finding in found] == [2, 3]


@pytest.mark.parametrize("text", ["x = zeros(3) +", ""], ids=["no torch", "empty"])
def test_a_file_that_never_says_torch_is_not_looked_at(text: str, planted: PlantedRule) -> None:
    assert lint(Source.from_text(text), planted.settings) == []
    assert not is_worth_linting(text.encode())


@pytest.mark.parametrize("text", ["import torch\nx = (1,\n", "import torch\nprint 1\n"])
def test_a_syntax_error_is_told_where_no_rule_would_look(text: str, planted: PlantedRule) -> None:
    assert [finding.code for finding in lint(Source.from_text(text), planted.settings)] == ["LINT01"]


def test_a_file_that_says_torchlint_is_worth_a_look() -> None:
    assert is_worth_linting(b"x = 1  # torchlint: ignore[MEM01]\n")


def test_behind_the_gate_libcst_is_not_imported() -> None:
    script = (
        "import sys; from torchlint.engine import lint; from torchlint.source import Source\n"
        "lint(Source.from_text('import torch\\nx = 1  # torchlint: ignore[NOPE]\\n'))\n"
        "assert not [name for name in sys.modules if name.startswith('libcst')]\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


BROKEN = [
    pytest.param("import torch\ntorch.zeros(\n", 3, id="unclosed"),
    pytest.param("import torch\ntorch.zeros(3)\n  x = 1\n", 3, id="indentation"),
    pytest.param("import torch\nprint torch.zeros(3)\n", 2, id="python 2"),
    pytest.param("import torch\nx = torch.zeros(3) $ 1\n", 2, id="odd character"),
    pytest.param("import torch\nx = 'torch.zeros\n", 2, id="unclosed string"),
    pytest.param("import torch\ntorch.zeros(3)\n\x00\n", 3, id="null byte"),
    pytest.param("import torch\nx = '\ud800'\n", 2, id="lone surrogate"),
    pytest.param("import torch\nx = 'C:\\Users\\me'\n", 2, id="half an escape"),
    pytest.param("import torch\nx = '\\N{no such name}'\n", 2, id="unknown character"),
]


def test_escapes_of_regular_expressions_are_fine_and_so_is_syntax_that_only_libcst_knows(
    monkeypatch: pytest.MonkeyPatch, planted: PlantedRule
) -> None:
    text = "import torch\nx = r'\\N\\x1'\n"
    assert "LINT01" not in [finding.code for finding in lint(Source.from_text(text), planted.settings)]
    monkeypatch.setattr("torchlint.parsing._parse_quietly", lambda _: compile("print x", "file", "exec"))
    assert "LINT01" not in [finding.code for finding in lint(Source.from_text(text), planted.settings)]


@pytest.mark.parametrize(("text", "line"), BROKEN)
def test_broken_syntax_is_one_finding(text: str, line: int, planted: PlantedRule) -> None:
    found = lint(Source.from_text(text), planted.settings)
    assert [finding.code for finding in found] == ["LINT01"]
    assert abs(found[0].line - line) <= 1
    assert "Traceback" not in found[0].message


def test_an_argument_that_became_a_keyword_is_named(planted: PlantedRule) -> None:
    (found,) = lint(Source.from_text("import torch\ny = x.cuda(async=True)\n"), planted.settings)
    assert found.code == "LINT01"
    assert found.line == 2
    assert "non_blocking" in found.message


def test_broken_syntax_is_said_whatever_is_selected_unless_ignored(planted: PlantedRule) -> None:
    text = "import torch\ntorch.zeros(\n"
    assert codes(text, Settings.selecting("MEM01")) == ["LINT01"]
    assert codes(text, Settings(command_line=Selection(select=("MEM01",)))) == ["LINT01"]
    assert codes(text, Settings(selection=Selection(ignore=("LINT01",)))) == []


def test_python_that_libcst_does_not_know_is_no_syntax_error(
    planted: PlantedRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(text: str) -> None:
        raise libcst.ParserSyntaxError("unknown syntax", lines=["x"], raw_line=2, raw_column=0)

    monkeypatch.setattr(libcst, "parse_module", refuse)
    (found,) = lint(Source.from_text("import torch\ntorch.zeros(3)\n"), planted.settings)
    assert (found.code, found.line) == ("LINT05", 2)
    assert found.message == "LibCST cannot parse this syntax: unknown syntax"


def deep(opening: str, inner: str, closing: str, depth: int) -> str:
    return "import torch\ntorch.zeros(1)\nx = " + opening * depth + inner + closing * depth + "\n"


DEEP = [
    pytest.param(deep("[", "1", "]", 90), ["MEM01"], id="90 lists"),
    pytest.param(deep("[", "1", "]", 20_000), ["LINT05"], id="20,000 lists"),
    pytest.param(deep("[\n", "1", "]\n", 20_000), ["LINT05"], id="20,000 lists on as many lines"),
    pytest.param(deep("(", "", "", 20_000), ["LINT05"], id="20,000 that never close"),
    pytest.param(deep("f(", "'ä'", ")", 5_000), ["LINT05"], id="5,000 calls around a character"),
    pytest.param(deep("lambda: ", "1", "", 8_000), ["LINT05"], id="8,000 lambdas"),
    pytest.param(deep("1 + ", "1", "", 1_500), ["MEM01"], id="a sum of 1,500 terms"),
    pytest.param(deep("a.", "b", "", 900), ["MEM01"], id="900 attributes"),
    pytest.param(deep("[0, ", "", "]", 60), ["MEM01"], id="60 nested lists with items"),
    pytest.param("import torch\ntorch.zeros(1)\nx = [" + "1, " * 20_000 + "]\n", ["MEM01"], id="a long list"),
    pytest.param("import torch\ntorch.zeros(1)\nx = '" + "([{" * 5_000 + "'\n", ["MEM01"], id="brackets in a string"),
]


@pytest.mark.parametrize(("text", "expected"), DEEP)
def test_deep_nesting_is_no_crash(text: str, expected: list[str], planted: PlantedRule) -> None:
    assert codes(text, planted.settings) == expected


def test_a_file_that_is_too_large_is_said(planted: PlantedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MOST_CHARACTERS", 20)
    assert codes("import torch\ntorch.zeros(3)\n", planted.settings) == ["LINT05"]


def crash(*arguments: object) -> None:
    raise KeyError("gone")


def test_a_rule_that_crashes_is_named_and_the_others_go_on(planted: PlantedRule) -> None:
    text = "import torch\nlosses = torch.zeros(3)\nx = 1  # torchlint: ignore[NOPE]\n"
    planted.check_with(crash)  # type: ignore[arg-type]
    found = lint(Source.from_text(text), Settings.selecting("MEM", "LINT"))
    assert [finding.code for finding in found] == ["LINT04", "LINT03"]
    assert found[0].message.startswith("rule MEM01 (append-graph-tensor) crashed: KeyError: 'gone' (test_engine.py:")


def test_what_a_rule_said_before_it_crashed_is_not_kept(planted: PlantedRule) -> None:
    def check(rule: Rule, model: Model) -> Iterator[Report]:
        yield Report(model.calls[0].node, "A call.")
        raise RecursionError("deep")

    planted.check_with(check)
    assert codes("import torch\ntorch.zeros(3)\n", planted.settings) == ["LINT04"]


def test_a_fixer_that_crashes_leaves_the_finding(planted: PlantedRule) -> None:
    planted.fix_with(crash)  # type: ignore[arg-type]
    found = lint(source_of("import torch\ntorch.zeros(3)\n"), planted.settings)
    assert sorted(finding.code for finding in found) == ["LINT04", "MEM01"]
    assert all(finding.fix is None for finding in found)


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param((Edit(0, 3, "a"), Edit(2, 5, "b")), id="overlap"),
        pytest.param((Edit(0, 10_000, "a"),), id="beyond the end"),
        pytest.param((Edit(-1, 2, "a"),), id="before the start"),
        pytest.param((Edit(5, 2, "a"),), id="backwards"),
        pytest.param((), id="none"),
    ],
)
def test_edits_that_make_no_sense_are_a_crash_of_the_fixer(edits: tuple[Edit, ...], planted: PlantedRule) -> None:
    planted.fix_with(lambda report, model: Fix(edits, Applicability.SAFE))
    assert sorted(codes("import torch\ntorch.zeros(3)\n", planted.settings)) == ["LINT04", "MEM01"]


def test_a_crash_comes_out_of_a_strict_run(planted: PlantedRule) -> None:
    planted.check_with(crash)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        lint(source_of("import torch\ntorch.zeros(3)\n"), planted.settings, strict=True)


def test_a_model_that_cannot_be_built(planted: PlantedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\ntorch.zeros(3)\n"
    monkeypatch.setattr(Model, "build", crash)
    assert codes(text, planted.settings) == ["LINT04"]

    def too_deep(source: object, module: object, imports: object = None) -> None:
        raise RecursionError

    monkeypatch.setattr(Model, "build", too_deep)
    assert codes(text, planted.settings) == ["LINT05"]


def test_a_tree_that_prints_otherwise_gives_no_positions(planted: PlantedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    def mismatch(model: object, node: object) -> None:
        raise SourceMismatchError

    monkeypatch.setattr(Model, "span", mismatch)
    assert codes("import torch\ntorch.zeros(3)\n", planted.settings) == ["LINT05"]


def test_severity_can_be_configured(planted: PlantedRule) -> None:
    settings = Settings(severity=(("MEM", Severity.INFO), ("MEM01", Severity.ERROR)))
    (found,) = (f for f in lint(source_of("import torch\ntorch.zeros(3)\n"), settings) if f.code == "MEM01")
    assert found.severity is Severity.ERROR


def test_a_finding_may_weigh_less_than_its_rule_unless_that_is_configured(planted: PlantedRule) -> None:
    def check(rule: Rule, model: Model) -> Iterator[Report]:
        yield Report(model.calls[0].node, "There is a call.", severity=Severity.INFO)

    planted.check_with(check)
    for configured, severity in (((), Severity.INFO), ((("MEM", Severity.ERROR),), Severity.ERROR)):
        (found,) = lint(source_of("import torch\ntorch.zeros(3)\n"), replace(planted.settings, severity=configured))
        assert found.severity is severity


def test_nothing_is_read_or_written(planted: PlantedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    planted.fix_with(rename_to("torch.ones"))
    lint(source_of("import torch\ntorch.zeros(3)\n"), planted.settings)
    monkeypatch.setattr(builtins, "open", crash)
    assert len(engine.lint(source_of("import torch\ntorch.zeros(3)\n"), planted.settings)) == 1
