"""What each format prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from tests.conftest import PlantedRule, rename_to
from tests.test_notebook import notebook
from torchlint.diagnostics import UNREADABLE_FILE, diagnose
from torchlint.engine import examine
from torchlint.filters.scope import Scope, key_of
from torchlint.finding import Applicability, Edit, Fix, Severity
from torchlint.output import FORMATS, Outcome, render, summary
from torchlint.output.github import append_to_step_summary
from torchlint.rule import Fact, NoFixError, Report, Rule
from torchlint.running.task import Result
from torchlint.source import Source

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

SCHEMA = Path(__file__).with_name("sarif-2.1.0.schema.json")

CODE = """
import torch

def f(n):
    return torch.zeros(
        n,
    )
"""


def outcome(planted: PlantedRule, text: str | bytes = CODE, path: str = "src/a.py", unsafe: bool = False) -> Outcome:
    data = text if isinstance(text, bytes) else text.encode()
    source = Source.from_bytes(data, Path(path))
    examined = examine(source, planted.settings)
    result = Result(source.path, tuple(examined.findings), source, suppressed=tuple(examined.suppressed))
    return Outcome([result], 1, unsafe)


def show(output_format: str, *arguments: Any, color: bool = False, **options: Any) -> str:
    return render(output_format, outcome(*arguments, **options), color)


def test_full(planted: PlantedRule) -> None:
    expected = """\
        src/a.py:5:12: MEM01 [*] There is `torch.zeros`.
          |
        5 |     return torch.zeros(
          |            ^^^^^^^^^^^^
        6 |         n,
          |         ^^
        7 |     )
          |     ^
          = append-graph-tensor, warning, safe fix:
        5 -     return torch.zeros(
        5 +     return torch.ones(

    """
    assert show("full", planted) == dedent(expected)


def test_full_says_why_a_fix_is_not_safe(planted: PlantedRule) -> None:
    planted.fix_with(rename_to("torch.ones", Applicability.UNSAFE, "Ones are not zeros."))
    text = show("full", planted)
    assert "MEM01 There is" in text
    assert "  = append-graph-tensor, warning, unsafe fix (Ones are not zeros):\n" in text
    assert "MEM01 [*] There is" in show("full", planted, unsafe=True)
    planted.fix_with(rename_to("torch.ones", Applicability.DISPLAY, "Only an idea."))
    assert "suggestion, never applied (Only an idea):\n" in show("full", planted, unsafe=True)


def test_full_shows_every_place_that_a_fix_changes(planted: PlantedRule) -> None:
    def with_import(report: Any, model: Any) -> Fix:
        own = rename_to("ones")(report, model)
        assert own is not None
        return Fix((Edit(1, 1, "from torch import ones\n"), *own.edits), Applicability.SAFE)

    planted.fix_with(with_import)
    changes = [line for line in show("full", planted).splitlines() if line[2:4] in ("+ ", "- ")]
    assert changes == ["2 + from torch import ones", "5 -     return torch.zeros(", "5 +     return ones("]


def test_full_shows_once_what_several_fixes_change_elsewhere(planted: PlantedRule) -> None:
    def with_import(report: Any, model: Any) -> Fix:
        own = rename_to("ones")(report, model)
        assert own is not None
        return Fix((Edit(0, 0, "from torch import ones\n"), *own.edits), Applicability.SAFE)

    planted.fix_with(with_import)
    text = show("full", planted, "import torch\n\nx = torch.zeros(2)\n\nx = torch.zeros(2)\n")
    assert text.count("from torch import ones") == 1
    assert text.count("  = line 1: changed as above\n5 - x = torch.zeros(2)\n5 + x = ones(2)\n") == 1


@pytest.mark.parametrize(
    ("line", "caret"),
    [
        pytest.param("\tx = torch.zeros(3)", "        ^^^^^^^^^^^^^^", id="tab"),
        pytest.param("    x = '漢字', torch.zeros(3)", "                ^^^^^^^^^^^^^^", id="wide characters"),
        pytest.param("    x = 'e\u0301', torch.zeros(3)", "             ^^^^^^^^^^^^^^", id="combining characters"),
    ],
)
def test_carets_stand_below_the_code(line: str, caret: str, planted: PlantedRule) -> None:
    lines = show("full", planted, f"import torch\nif 1:\n{line}\n").splitlines()
    assert lines[3] == f"  | {caret}"


def test_control_characters_do_not_reach_the_terminal(planted: PlantedRule) -> None:
    text = "import torch\nx = '\x1b[31m', torch.zeros(3)\n"
    assert "\x1b" not in show("full", planted, text)
    assert "\x1b" in show("full", planted, color=True)


def test_a_long_range_is_cut(planted: PlantedRule) -> None:
    text = show("full", planted, "import torch\ntorch.zeros(\n" + "    1,\n" * 10 + ")\n")
    assert "  | ... 8 more lines\n" in text


def test_concise(planted: PlantedRule) -> None:
    assert show("concise", planted) == "src/a.py:5:12: MEM01 [*] There is `torch.zeros`.\n"
    data = notebook("import torch", ["x = 1\n", "torch.zeros(3)"])
    assert show("concise", planted, data, "a.ipynb").startswith("a.ipynb:cell 2:2:1: MEM01")


def test_json(planted: PlantedRule) -> None:
    assert json.loads(show("json", planted)) == [
        {
            "code": "MEM01",
            "name": "append-graph-tensor",
            "severity": "warning",
            "confidence": "certain",
            "message": "There is `torch.zeros`.",
            "path": "src/a.py",
            "cell": None,
            "line": 5,
            "column": 12,
            "end_line": 7,
            "end_column": 6,
            "function": "f",
            "url": None,
            "chain": [],
            "fix": {
                "applicability": "safe",
                "why": "",
                "edits": [{"line": 5, "column": 12, "end_line": 5, "end_column": 23, "text": "torch.ones"}],
                "elsewhere": [],
            },
            "no_fix": None,
            "suppressed": None,
        }
    ]


def test_json_of_a_notebook_counts_within_the_cell(planted: PlantedRule) -> None:
    data = notebook("import torch", ["x = 1\n", "torch.zeros(3)"])
    (entry,) = json.loads(show("json", planted, data, "a.ipynb"))
    assert (entry["cell"], entry["line"], entry["column"]) == (2, 2, 1)
    assert (entry["fix"]["edits"][0]["cell"], entry["fix"]["edits"][0]["line"]) == (2, 2)


def test_every_format_with_room_for_it_says_why(planted: PlantedRule) -> None:
    def check(rule: Rule, model: Model) -> Iterator[Report]:
        call = next(call for call in model.calls if call.callee == "torch.zeros")
        chain = (Fact(model.statement(call.node), "The  call\n returns."), Fact(call.arguments[0], "Its size."))
        yield Report(call.node, "There is `torch.zeros`.", chain=chain)

    planted.check_with(check)
    assert "  = line 5: The call returns.\n  = line 6: Its size.\n  = append" in show("full", planted)
    (entry,) = json.loads(show("json", planted))
    place = {"line": 6, "column": 9, "end_line": 6, "end_column": 10, "cell": None}
    assert entry["chain"][1] == {"message": "Its size."} | place
    (result,) = json.loads(show("sarif", planted))["runs"][0]["results"]
    flow = [step["location"] for step in result["codeFlows"][0]["threadFlows"][0]["locations"]]
    assert [step["message"]["text"] for step in flow] == ["The call returns.", "Its size.", "There is `torch.zeros`."]
    assert [step["physicalLocation"]["region"]["startLine"] for step in flow] == [5, 6, 5]
    data = notebook("import torch\nn = 3", ["x = 1\n", "torch.zeros(n)"])
    assert "= line 2: Its size." in show("full", planted, data, "a.ipynb")


def test_formats_with_room_for_it_say_what_stood_in_the_way_of_a_fix(planted: PlantedRule) -> None:
    def refuse(report: Report, model: Model) -> Fix:
        raise NoFixError("the zeros are\n needed")

    planted.fix_with(refuse)
    assert "append-graph-tensor, warning, no fix: the zeros are needed\n" in show("full", planted)
    [entry] = json.loads(show("json", planted))
    assert (entry["fix"], entry["no_fix"]) == (None, "the zeros are needed")
    [result] = json.loads(show("sarif", planted))["runs"][0]["results"]
    assert result["properties"]["noFix"] == "the zeros are needed"


def test_nothing_found(planted: PlantedRule) -> None:
    nothing = Outcome((), 3)
    assert [render(name, nothing) for name in ("full", "concise", "github")] == ["", "", ""]
    assert json.loads(render("json", nothing)) == []
    assert json.loads(render("sarif", nothing))["runs"][0]["results"] == []
    assert summary(nothing) == "Checked 3 files, found nothing."


def test_github_shows_the_worst_first_and_escapes(planted: PlantedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted.rule, "severity", Severity.INFO)
    lines = show("github", planted, CODE + "x = 1  # torchlint: ignore[NOPE]\n", "a,b:c.py").splitlines()
    assert lines == [
        "::warning title=torchlint (LINT03),file=a%2Cb%3Ac.py,line=8,col=8,endLine=8,endColumn=33"
        "::LINT03 The comment suppresses `NOPE`, but there is no such rule.",
        "::notice title=torchlint (MEM01),file=a%2Cb%3Ac.py,line=5,col=12,endLine=7,endColumn=6"
        "::MEM01 There is `torch.zeros`.",
    ]


def test_github_gets_a_table(planted: PlantedRule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    append_to_step_summary(outcome(planted))
    assert "| warning | MEM01 | `src/a.py:5:12` | There is `torch.zeros`. |\n" in (tmp_path / "summary.md").read_text()


def test_grouped(planted: PlantedRule) -> None:
    assert show("grouped", planted, CODE + "torch.zeros(4)\n") == (
        "src/a.py:\n  5:12  MEM01 [*] There is `torch.zeros`.\n  8:1   MEM01 [*] There is `torch.zeros`.\n"
    )


def test_json_lines(planted: PlantedRule) -> None:
    lines = show("json-lines", planted, CODE + "torch.zeros(4)\n").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(show("json", planted, CODE + "torch.zeros(4)\n"))


class TestGitlab:
    def test_an_entry_has_what_the_report_needs(self, planted: PlantedRule) -> None:
        (entry,) = json.loads(show("gitlab", planted))
        assert len(entry.pop("fingerprint")) > 32
        assert entry == {
            "description": "MEM01 There is `torch.zeros`.",
            "check_name": "append-graph-tensor",
            "severity": "major",
            "location": {"path": "src/a.py", "lines": {"begin": 5, "end": 7}},
        }

    def test_fingerprints_are_unique(self, planted: PlantedRule) -> None:
        entries = json.loads(show("gitlab", planted, "import torch\n" + "x = torch.zeros(1)\n" * 3))
        assert len({entry["fingerprint"] for entry in entries}) == 3

    def test_paths_are_relative_to_the_project(
        self, planted: PlantedRule, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CI_PROJECT_DIR", str(project.parent))
        (entry,) = json.loads(show("gitlab", planted))
        assert entry["location"]["path"] == f"{project.name}/src/a.py"

    def test_a_notebook_says_where_in_the_message(self, planted: PlantedRule) -> None:
        (entry,) = json.loads(show("gitlab", planted, notebook("import torch", "torch.zeros(3)"), "a.ipynb"))
        assert entry["description"].startswith("MEM01 Cell 2, line 1: ")


class TestJunit:
    def test_each_finding_is_a_failed_test(self, planted: PlantedRule) -> None:
        root = ElementTree.fromstring(show("junit", planted, CODE + "torch.zeros(4)\n"))
        assert (root.get("tests"), root.get("failures")) == ("2", "2")
        (suite,) = root
        assert (suite.get("name"), len(suite)) == ("src/a.py", 2)
        (failure,) = suite[0]
        assert (suite[0].get("classname"), suite[0].get("line")) == ("src/a.py", "5")
        assert (failure.get("type"), failure.get("message")) == ("warning", "There is `torch.zeros`.")

    def test_without_findings_one_test_passes(self) -> None:
        root = ElementTree.fromstring(render("junit", Outcome((), 3)))
        assert (root.get("tests"), root.get("failures"), len(root[0])) == ("1", "0", 1)

    def test_what_xml_cannot_hold_is_marked(self, planted: PlantedRule) -> None:
        root = ElementTree.fromstring(show("junit", planted, CODE, "a\x0b<&>.py"))
        assert root[0].get("name") == "a\N{REPLACEMENT CHARACTER}<&>.py"


class TestRdjson:
    def document(self, planted: PlantedRule, *arguments: Any) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(show("rdjson", planted, *arguments))
        return document["diagnostics"][0]  # type: ignore[no-any-return]

    def test_a_diagnostic(self, planted: PlantedRule) -> None:
        assert self.document(planted) == {
            "message": "There is `torch.zeros`.",
            "location": {
                "path": "src/a.py",
                "range": {"start": {"line": 5, "column": 12}, "end": {"line": 7, "column": 6}},
            },
            "severity": "WARNING",
            "code": {"value": "MEM01"},
            "suggestions": [
                {"range": {"start": {"line": 5, "column": 12}, "end": {"line": 5, "column": 23}}, "text": "torch.ones"}
            ],
        }

    def test_columns_count_bytes(self, planted: PlantedRule) -> None:
        diagnostic = self.document(planted, "import torch\nx = '漢é', torch.zeros(3)\n")
        assert diagnostic["location"]["range"]["start"] == {"line": 2, "column": 14}

    def test_a_suggestion_has_the_whole_fix(self, planted: PlantedRule) -> None:
        def twice(report: Any, model: Any) -> Fix:
            start, end = model.span(report.node)
            return Fix((Edit(start, start + 5, "TORCH"), Edit(end - 1, end, ", 1)")), Applicability.SAFE)

        planted.fix_with(twice)
        (suggestion,) = self.document(planted)["suggestions"]
        assert suggestion["text"] == "TORCH.zeros(\n        n,\n    , 1)"

    def test_a_fix_of_places_that_lie_far_apart_is_no_suggestion(self, planted: PlantedRule) -> None:
        def with_import(report: Any, model: Any) -> Fix:
            return Fix((Edit(0, 0, "import x\n"), *rename_to("ones")(report, model).edits), Applicability.SAFE)  # type: ignore[union-attr]

        planted.fix_with(with_import)
        assert "suggestions" in self.document(planted, "import torch\n" + "\n" * 20 + "torch.zeros(1)\n")
        assert "suggestions" not in self.document(planted, "import torch\n" + "\n" * 40 + "torch.zeros(1)\n")

    def test_an_idea_is_no_suggestion(self, planted: PlantedRule) -> None:
        planted.fix_with(rename_to("torch.ones", Applicability.DISPLAY, "Only an idea."))
        assert "suggestions" not in self.document(planted)


def test_every_format_takes_a_file_that_could_not_be_read() -> None:
    finding = diagnose(UNREADABLE_FILE, "the file cannot be read", Path("a.py"))
    for name in FORMATS:
        assert "the file cannot be read" in render(name, Outcome([Result(Path("a.py"), (finding,))], 1))


def test_a_summary_for_github_has_an_end(planted: PlantedRule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    append_to_step_summary(outcome(planted, "import torch\n" + "x = torch.zeros(1)\n" * 502))
    text = (tmp_path / "summary.md").read_text()
    assert text.count("| warning |") == 500
    assert "... and 2 more." in text


class TestSarif:
    @pytest.mark.parametrize(
        ("text", "path"),
        [
            pytest.param(CODE, "src/a.py", id="a fix"),
            pytest.param("import torch\ntorch.zeros(1)  # noqa: MEM01\n", "a b.py", id="a suppression"),
            pytest.param(notebook("import torch", "torch.zeros(3)"), "a.ipynb", id="a notebook"),
            pytest.param("import torch\ntorch.zeros(\n", "a.py", id="a syntax error"),
            pytest.param(CODE, "/elsewhere/a.py", id="an absolute path"),
            pytest.param("import torch\n", "a.py", id="nothing"),
        ],
    )
    def test_the_document_is_valid(self, text: str | bytes, path: str, planted: PlantedRule) -> None:
        jsonschema = pytest.importorskip("jsonschema")
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())
        assert not [error.message for error in validator.iter_errors(self.document(planted, text, path))]

    def test_the_schema_objects_to_what_is_wrong(self, planted: PlantedRule) -> None:
        jsonschema = pytest.importorskip("jsonschema")
        document = self.document(planted)
        document["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0].pop("replacements")
        with pytest.raises(jsonschema.ValidationError, match="replacements"):
            jsonschema.validate(document, json.loads(SCHEMA.read_text()))

    def test_a_baseline_is_an_external_suppression(self, planted: PlantedRule) -> None:
        source = Source.from_text("import torch\ntorch.zeros(1)\n")
        accepted = {key_of(finding): 1 for finding in examine(source, planted.settings).findings}
        examined = examine(source, replace(planted.settings, scope=Scope(accepted=accepted)))
        found = Outcome([Result(source.path, (), source, suppressed=tuple(examined.suppressed))], 1)
        (result,) = json.loads(render("sarif", found))["runs"][0]["results"]
        assert result["suppressions"] == [{"kind": "external"}]

    def document(self, planted: PlantedRule, *arguments: Any) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(show("sarif", planted, *arguments))
        return document

    def test_a_result(self, planted: PlantedRule) -> None:
        document = self.document(planted)
        run = document["runs"][0]
        (result,) = run["results"]
        assert document["version"] == "2.1.0"
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "MEM01"
        assert result["level"] == "warning"
        location = result["locations"][0]["physicalLocation"]
        assert location["artifactLocation"] == {"uri": "src/a.py", "uriBaseId": "%SRCROOT%"}
        assert location["region"] == {"startLine": 5, "startColumn": 12, "endLine": 7, "endColumn": 6}
        assert "%SRCROOT%" in run["originalUriBaseIds"]

    def test_a_fix(self, planted: PlantedRule) -> None:
        planted.fix_with(rename_to("torch.ones", Applicability.UNSAFE, "Ones are not zeros."))
        (fix,) = self.document(planted)["runs"][0]["results"][0]["fixes"]
        assert fix["description"]["text"] == "unsafe fix: Ones are not zeros."
        (replacement,) = fix["artifactChanges"][0]["replacements"]
        assert replacement["insertedContent"] == {"text": "torch.ones"}
        assert replacement["deletedRegion"] == {"startLine": 5, "startColumn": 12, "endLine": 5, "endColumn": 23}

    def test_addresses_are_quoted(self, planted: PlantedRule) -> None:
        result = self.document(planted, CODE, "a b/ü#.py")["runs"][0]["results"][0]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/%C3%BC%23.py"

    def test_fingerprints_survive_moved_lines_and_tell_equal_lines_apart(self, planted: PlantedRule) -> None:
        def prints(text: str) -> list[str]:
            results = self.document(planted, text)["runs"][0]["results"]
            return [result["partialFingerprints"]["torchlint/v1"] for result in results]

        twice = "import torch\nx = torch.zeros(3)\nx = torch.zeros(3)\n"
        assert len(set(prints(twice))) == 2
        assert prints(twice) == prints("# moved\n\n" + twice.replace(" = ", "  =  "))

    def test_addresses_and_fingerprints_begin_at_the_top_of_the_repository(
        self, planted: PlantedRule, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (project / ".git").mkdir()
        (project / "src").mkdir()
        from_top = self.document(planted)
        monkeypatch.chdir(project / "src")
        from_below = self.document(planted, CODE, "a.py")
        assert from_below == from_top
        (result,) = from_below["runs"][0]["results"]
        (change,) = result["fixes"][0]["artifactChanges"]
        location = result["locations"][0]["physicalLocation"]
        for place in (location, change):
            assert place["artifactLocation"] == {"uri": "src/a.py", "uriBaseId": "%SRCROOT%"}
        beside = self.document(planted, CODE, str(project / "b.py"))["runs"][0]["results"][0]
        assert beside["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "b.py"

    def test_a_file_outside_the_repository_has_an_absolute_address(self, planted: PlantedRule) -> None:
        (result,) = self.document(planted, CODE, "/elsewhere/a.py")["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///elsewhere/a.py"}

    def test_what_is_suppressed_says_so(self, planted: PlantedRule) -> None:
        text = "import torch\ntorch.zeros(1)\ntorch.zeros(2)  # torchlint: ignore[MEM01] it is small\n"
        results = self.document(planted, text)["runs"][0]["results"]
        assert [result["suppressions"] for result in results] == [
            [],
            [{"kind": "inSource", "justification": "it is small"}],
        ]


def test_summaries(planted: PlantedRule) -> None:
    planted.fix_with(rename_to("torch.ones", Applicability.UNSAFE, "Ones are not zeros."))
    text = CODE + "x = 1  # torchlint: ignore[NOPE]\n"
    assert summary(outcome(planted, text)) == (
        "Found 2 findings in 1 of 1 file (1 fixable with --fix, 1 more with --unsafe-fixes)."
    )
    assert summary(outcome(planted, text, unsafe=True)) == (
        "Found 2 findings in 1 of 1 file (2 fixable with --fix --unsafe-fixes)."
    )


@pytest.mark.parametrize(
    ("choice", "environment", "expected"),
    [
        ("auto", {}, False),
        ("auto", {"FORCE_COLOR": "1"}, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_color(choice: str, environment: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchlint.terminal import use_color

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert use_color(choice) is expected
