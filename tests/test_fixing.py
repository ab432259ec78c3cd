"""Fix passes, and what is rolled back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import PlantedRule, rename_to
from tests.test_notebook import notebook
from torchlint.finding import Applicability, Edit, Finding, Fix
from torchlint.fixing import passes as fixing
from torchlint.fixing.passes import Fixed, fix_source, fix_together
from torchlint.rule import Report
from torchlint.semantics.model import Model
from torchlint.semantics.project import Project
from torchlint.source import Source

TEXT = "import torch\nx = torch.zeros(3)\ny = torch.zeros(4)\n"


def fix(text: str, planted: PlantedRule, unsafe: bool = False) -> Fixed:
    return fix_source(Source.from_text(text), planted.settings, unsafe)


def test_all_fixes_are_applied(planted: PlantedRule) -> None:
    fixed = fix(TEXT, planted)
    assert fixed.source.text == TEXT.replace("zeros", "ones")
    assert (len(fixed.applied), fixed.remaining, fixed.changed) == (2, (), True)
    assert fixed.applied_by_code == {"MEM01": 2}


def test_a_second_run_changes_nothing(planted: PlantedRule) -> None:
    assert not fix(fix(TEXT, planted).source.text, planted).changed


def test_unsafe_fixes_wait_to_be_asked_for(planted: PlantedRule) -> None:
    planted.fix_with(rename_to("torch.ones", Applicability.UNSAFE, "ones are not zeros"))
    assert not fix(TEXT, planted).changed
    assert len(fix(TEXT, planted).remaining) == 2
    assert fix(TEXT, planted, unsafe=True).changed


def test_what_is_for_display_is_never_applied(planted: PlantedRule) -> None:
    planted.fix_with(rename_to("torch.ones", Applicability.DISPLAY, "a hint"))
    assert not fix(TEXT, planted, unsafe=True).changed


def test_a_caller_may_accept_single_fixes(planted: PlantedRule) -> None:
    source = Source.from_text(TEXT)
    settings = {source.path: planted.settings}
    fixed = fix_together([source], settings, Project(), accept=lambda source, finding: finding.line == 3)[source.path]
    assert fixed.source.text == "import torch\nx = torch.zeros(3)\ny = torch.ones(4)\n"
    assert [finding.line for finding in fixed.remaining] == [2]


def test_fixes_that_touch_wait_for_the_next_pass(planted: PlantedRule) -> None:
    def with_import(report: object, model: object) -> Fix:
        own = rename_to("ones")(report, model)  # type: ignore[arg-type]
        text = model.source.text  # type: ignore[attr-defined]
        edits = own.edits if own is not None else ()
        place = text.index("import torch")
        needed = () if "from torch import ones" in text else (Edit(place, place, "from torch import ones\n"),)
        return Fix((*needed, *edits), Applicability.SAFE)

    planted.fix_with(with_import)
    assert fix(TEXT, planted).source.text == ("from torch import ones\nx = ones(3)\ny = ones(4)\n")


def test_a_fix_that_changes_what_is_to_be_said_of_others_comes_first(planted: PlantedRule) -> None:
    def fixer(report: Report, model: Model) -> Fix | None:
        left = model.source.text.count("torch.zeros(")
        last = report.node is [call.node for call in model.calls if call.callee == "torch.zeros"][-1]
        made = rename_to(f"torch.ones_of_{left}")(report, model)
        return replace(made, comes_first=last and left > 1) if made is not None else None

    planted.fix_with(fixer)
    assert fix(TEXT, planted).source.text == TEXT.replace("zeros", "ones_of_1", 1).replace("zeros", "ones_of_2", 1)


def test_what_comes_first_is_made_before_a_fix_inside_of_what_it_moves(planted: PlantedRule) -> None:
    text = "import torch\ny = torch.zeros(4)\nx = torch.zeros(3)[0]\n"

    def fixer(report: Report, model: Model) -> Fix | None:
        source = model.source.text
        start = model.span(report.node)[0] - len("x = ")
        if source.startswith("x", start) and "if" not in source:
            lines = [source.index("y"), start]
            moved = [Edit(place, place, "if 1: " if place is lines[0] else "if 2: ") for place in lines]
            return replace(Fix(tuple(moved), Applicability.SAFE), comes_first=True)
        name = rename_to("torch.ones" if "if" not in source else "torch.eye")(report, model)
        return replace(name, comes_first=True) if name is not None else None

    planted.fix_with(fixer)
    assert fix(text, planted).source.text == "import torch\nif 1: y = torch.eye(4)\nif 2: x = torch.eye(3)[0]\n"


def test_fixes_of_one_isolation_key_come_one_per_pass(planted: PlantedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    apply = fixing.apply_fixes

    def counting(sources: list[Source], findings: list[Finding]) -> list[Source]:
        passes.append(len(findings))
        return apply(sources, findings)

    def isolated(report: object, model: object) -> Fix:
        own = rename_to("torch.ones")(report, model)  # type: ignore[arg-type]
        assert own is not None
        return Fix(own.edits, own.applicability, isolation="one")

    monkeypatch.setattr(fixing, "apply_fixes", counting)
    planted.fix_with(isolated)
    assert fix(TEXT, planted).source.text == TEXT.replace("zeros", "ones")
    assert passes == [1, 1]


BROKEN_FIXES = [
    pytest.param("torch.ones(", "leaves text that is not valid Python", id="unparsable"),
    pytest.param("return torch.ones", "leaves text that is not valid Python", id="outside of a function"),
    pytest.param("torch. zeros", None, id="never settles"),
]


@pytest.mark.parametrize(("replacement", "message"), BROKEN_FIXES)
def test_a_fix_that_goes_wrong_leaves_the_file_as_it_was(
    replacement: str, message: str | None, planted: PlantedRule
) -> None:
    planted.fix_with(rename_to(replacement))
    fixed = fix("import torch\ntorch.zeros(3)\n", planted)
    assert not fixed.changed
    rolled_back = fixed.remaining[0]
    assert rolled_back.code == "LINT06"
    assert "MEM01 (append-graph-tensor)" in rolled_back.message
    assert (message or "turns in a circle") in rolled_back.message
    assert "MEM01" in [finding.code for finding in fixed.remaining]


def test_the_guilty_fix_is_named(planted: PlantedRule) -> None:
    good, bad = rename_to("torch.ones"), rename_to("torch.ones(")
    planted.fix_with(lambda report, model: (bad if "4" in model.code(report.node) else good)(report, model))
    text = TEXT + "z = 1  # torchlint: ignore[NOPE]\n"
    message = fix(text, planted).remaining[0].message
    assert "MEM01" in message
    assert "LINT03" not in message


def test_fixes_that_go_on_forever_stop(planted: PlantedRule) -> None:
    planted.fix_with(lambda report, model: Fix((Edit(0, 0, "#\n"),), Applicability.SAFE))
    fixed = fix("import torch\ntorch.zeros(3)\n", planted)
    assert len(fixed.applied) == fixing.MAX_PASSES
    assert fixed.source.text.count("#\n") == fixing.MAX_PASSES


def test_a_file_that_this_interpreter_cannot_compile_is_fixed_all_the_same(planted: PlantedRule) -> None:
    text = "import torch\nx = torch.zeros(3)\nreturn x\n"
    assert fix(text, planted).source.text == text.replace("zeros", "ones")


def test_characters_that_the_encoding_lacks_roll_back(planted: PlantedRule) -> None:
    planted.fix_with(rename_to("torch.ones_\u00e4"))
    data = b"# coding: ascii\nimport torch\ntorch.zeros(3)\n"
    fixed = fix_source(Source.from_bytes(data, Path("a.py")), planted.settings)
    assert not fixed.changed
    assert fixed.remaining[0].code == "LINT06"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"import torch\r\nx = torch.zeros(3)\r\n", id="crlf"),
        pytest.param(b"import torch\r\nx = torch.zeros(3)\ny = 1\r\n", id="mixed newlines"),
        pytest.param(b"\xef\xbb\xbfimport torch\nx = torch.zeros(3)\n", id="byte order mark"),
        pytest.param(b"import torch\nx = torch.zeros(3)", id="no final newline"),
        pytest.param(b"# coding: latin-1\nimport torch\nx = torch.zeros(3)  # \xe4\n", id="latin-1"),
        pytest.param(b"import torch\n\x0c\nx = torch.zeros(3)\n", id="form feed"),
        pytest.param(b"import torch\nif 1:\n\tx = torch.zeros(3)  \n\n\n", id="tabs and trailing space"),
    ],
)
def test_bytes_around_a_fix_stay(data: bytes, planted: PlantedRule) -> None:
    fixed = fix_source(Source.from_bytes(data, Path("a.py")), planted.settings)
    assert fixed.source.data == data.replace(b"zeros", b"ones")


def test_a_notebook_is_fixed_in_its_cells(planted: PlantedRule) -> None:
    data = notebook(["%matplotlib inline\n", "import torch\n"], ["x = await f()\n", "!ls\n", "torch.zeros(3)"])
    fixed = fix_source(Source.from_bytes(data, Path("a.ipynb")), planted.settings)
    assert fixed.source.data == data.replace(b"zeros", b"ones")
    assert fixed.remaining == ()
