"""Suppression comments: where they count, where they do not, and the ones that nothing uses."""

from __future__ import annotations

import pytest

from tests.conftest import PlantedRule
from tests.support import source_of
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.fixing.passes import fix_source

SILENT = [
    pytest.param("x = torch.zeros(3)  # torchlint: ignore[MEM01]", id="by code"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignore[append-graph-tensor]", id="by name"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignore[MEM]", id="by family"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignore[mem01] the reason", id="with a reason"),
    pytest.param("x = torch.zeros(3)  # torchlint:ignore", id="without a list"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignore MEM01", id="without brackets"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignore(MEM01) small", id="with round brackets"),
    pytest.param("x = torch.zeros(3)  # type: ignore  # torchlint: ignore[MEM01]", id="after another comment"),
    pytest.param("x = torch.zeros(3)  # noqa: MEM01", id="noqa with a code"),
    pytest.param("x = torch.zeros(3)  # noqa: E501, MEM01", id="noqa with two codes"),
    pytest.param("x = torch.zeros(3)  # NOQA", id="noqa alone"),
    pytest.param(
        "x = f(\n    1,\n    torch.zeros(3),\n)  # torchlint: ignore[MEM01]", id="at the end of the statement"
    ),
    pytest.param("x = f(  # torchlint: ignore[MEM01]\n    1,\n    torch.zeros(3),\n)", id="at its beginning"),
    pytest.param("x = f(\n    # torchlint: ignore[MEM01]\n    1,\n    torch.zeros(3),\n)", id="inside"),
    pytest.param("# torchlint: ignore[MEM01]\nx = torch.zeros(3)", id="alone above"),
    pytest.param("# torchlint: ignore[MEM01]\n\n# why\nx = f(\n    torch.zeros(3),\n)", id="above, with lines between"),
    pytest.param("if x:\n    # torchlint: ignore[MEM01]\n    x = torch.zeros(3)", id="above, indented"),
    pytest.param("# torchlint: ignore[MEM01]\n@f\n@g(\n1)\ndef h(x=torch.zeros(3)): ...", id="above a decorator"),
    pytest.param("# torchlint: ignore-file[MEM01]\nx = 1\ny = torch.zeros(3)", id="for the file"),
    pytest.param("y = torch.zeros(3)\n# torchlint: ignore-file[MEM01]", id="for the file, at its end"),
    pytest.param("y = torch.zeros(3)  # torchlint: ignore[MEM01]\r\nz = 1\r\n", id="crlf"),
]

FOUND = [
    pytest.param("x = torch.zeros(3)\n# torchlint: ignore[MEM01]\ny = 1", id="above the next statement"),
    pytest.param("# torchlint: ignore[MEM01]\nif x:\n    y = torch.zeros(3)", id="above the header only"),
    pytest.param("s = '# torchlint: ignore[MEM01]'; x = torch.zeros(3)", id="in a string"),
    pytest.param("x = f('''\n# torchlint: ignore-file\n''', torch.zeros(3))", id="in a string of several lines"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignore[MEM02]", id="of another rule"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignore[]", id="of no rule"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignore MEM02", id="of another rule, without brackets"),
    pytest.param("x = torch.zeros(3)  # torchlint: ignored", id="another word"),
    pytest.param("x = torch.zeros(3)  # noqa: E501", id="noqa of another code"),
]


@pytest.mark.parametrize("code", SILENT)
def test_a_comment_suppresses(code: str, planted: PlantedRule) -> None:
    assert lint(source_of(f"import torch\n{code}"), planted.settings) == []


@pytest.mark.parametrize("code", FOUND)
def test_a_comment_does_not_suppress(code: str, planted: PlantedRule) -> None:
    found = [finding.code for finding in lint(source_of(f"import torch\n{code}"), planted.settings)]
    assert "MEM01" in found


UNUSED = [
    pytest.param("x = 1  # torchlint: ignore[MEM01]\n", "x = 1\n", id="nothing found"),
    pytest.param("x = 1  # torchlint: ignore[MEM01] why so\n", "x = 1\n", id="with its reason"),
    pytest.param("x = 1  # torchlint: ignore[NOPE]\n", "x = 1\n", id="no such rule"),
    pytest.param("x = 1  # noqa: MEM01\n", "x = 1\n", id="noqa"),
    pytest.param("x = 1  # noqa: E501, MEM01\n", "x = 1  # noqa: E501\n", id="noqa with another tool's code"),
    pytest.param("x = 1  # torchlint: ignore[MEM01]  # type: ignore\n", "x = 1  # type: ignore\n", id="before another"),
    pytest.param("x = 1  # why  # torchlint: ignore[MEM01]\n", "x = 1  # why\n", id="after another"),
    pytest.param("# torchlint: ignore[MEM01]\nx = 1\n", "x = 1\n", id="on its own line"),
    pytest.param("x = 1\n# torchlint: ignore-file[MEM01]", "x = 1\n", id="for the file"),
    pytest.param(
        "x = torch.zeros(1)  # torchlint: ignore[MEM01, NOPE] why\n",
        "x = torch.zeros(1)  # torchlint: ignore[MEM01] why\n",
        id="one of two",
    ),
]


@pytest.mark.parametrize(("code", "after"), UNUSED)
def test_an_unused_comment_is_found_and_removed(code: str, after: str, planted: PlantedRule) -> None:
    source = source_of(f"import torch\n{code}")
    assert [finding.code for finding in lint(source, planted.settings)] == ["LINT03"]
    assert fix_source(source, planted.settings).source.text == f"import torch\n{after}"


NOT_JUDGED = [
    pytest.param("x = 1  # torchlint: ignore[SYNC01]", id="of a rule that did not run"),
    pytest.param("x = 1  # torchlint: ignore", id="without a list, when not every rule ran"),
    pytest.param("x = 1  # torchlint: ignore[MEM]", id="a family of which one rule ran"),
    pytest.param("x = 1  # noqa", id="noqa alone"),
    pytest.param("x = 1  # noqa: E501, F401", id="codes of other tools"),
    pytest.param("x = 1  # torchlint: ignore[MEM01, LINT03] kept", id="asked to be kept"),
    pytest.param("s = '# torchlint: ignore[MEM01]'", id="in a string"),
]


@pytest.mark.parametrize("code", NOT_JUDGED)
def test_a_comment_is_not_judged(code: str, planted: PlantedRule) -> None:
    assert lint(source_of(f"import torch\n{code}\n"), planted.settings) == []


def test_a_bare_comment_is_judged_when_every_rule_ran() -> None:
    found = lint(source_of("import torch\nx = 1  # torchlint: ignore\n"), Settings())
    assert [finding.code for finding in found] == ["LINT03"]


def test_unused_comments_are_not_reported_where_only_other_rules_are_selected() -> None:
    source = source_of("import torch\nx = 1  # torchlint: ignore[MEM01]\n")
    assert lint(source, Settings.selecting("MEM01")) == []


def test_a_failure_cannot_be_suppressed(planted: PlantedRule) -> None:
    def crash(rule: object, model: object) -> None:
        raise ValueError("boom")

    planted.check_with(crash)  # type: ignore[arg-type]
    found = lint(source_of("# torchlint: ignore-file\nimport torch\ntorch.zeros(1)\n"), planted.settings)
    assert [finding.code for finding in found] == ["LINT04"]
