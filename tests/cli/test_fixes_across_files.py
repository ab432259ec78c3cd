"""Fixes that change several files: all of them or none, and only files that were named."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.test_check import check, plant
from tests.conftest import PlantedRule, rename_to
from tests.test_notebook import notebook
from torchlint.finding import Applicability, Edit, FileEdits, Fix
from torchlint.rule import Report
from torchlint.semantics.model import Model

USER = "import torch\nfrom sizes import size\nx = torch.zeros(size)\n"
SIZES = "import torch\ny = torch.zeros(1)\nsize = 3\n"
USER_AFTER, SIZES_AFTER = USER.replace("zeros", "ones"), SIZES.replace("zeros", "ones").replace("3", "4")


def across(size: str = "4", applicability: Applicability = Applicability.SAFE) -> Callable[[Report, Model], Fix]:
    """A fix that also changes the size in the file that it is imported from, if there is one."""

    def fix(report: Report, model: Model) -> Fix:
        own = rename_to("torch.ones")(report, model)
        assert own is not None
        sizes = next((file for file in model.neighbours() if file.path.name == "sizes.py"), None)
        if sizes is None or "size = 3" not in sizes.text:
            return own
        at = sizes.text.index("3")
        elsewhere = (FileEdits(sizes, (Edit(at, at + 1, size),)),)
        return Fix(own.edits, applicability, "It says so.", elsewhere=elsewhere)

    return fix


@pytest.fixture(autouse=True)
def two_files(project: Path, planted: PlantedRule) -> None:
    planted.fix_with(across())
    plant(USER, "user.py")
    plant(SIZES, "sizes.py")


def texts() -> tuple[str, str]:
    return Path("user.py").read_text(), Path("sizes.py").read_text()


def shown(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_both_files_change_beside_the_fixes_of_their_own() -> None:
    result = check("--fix")
    assert texts() == (USER_AFTER, SIZES_AFTER)
    assert (result.exit_code, result.stderr) == (0, "Fixed 2 findings. Checked 2 files, found nothing more.\n")
    assert check("--fix").stderr == "Checked 2 files, found nothing.\n"


def test_a_file_that_no_rule_has_to_look_at_changes_too() -> None:
    plant("size = 3\n", "sizes.py")
    assert check().exit_code == 1  # and notes in the cache what is clean
    check("--fix")
    assert texts() == (USER_AFTER, "size = 4\n")


def test_a_diff_shows_both_files_and_can_be_applied() -> None:
    result = check("--diff")
    assert texts() == (USER, SIZES)
    assert result.stderr == "Would fix 2 findings in 2 files.\n"
    subprocess.run(["patch", "-p0"], input=result.stdout_bytes, capture_output=True, check=True)
    assert texts() == (USER_AFTER, SIZES_AFTER)


def test_a_file_that_was_not_named_is_left_and_the_finding_says_so() -> None:
    result = check("--fix", "user.py")
    assert texts() == (USER, SIZES)
    why = "it would change sizes.py, which is not among the files to check"
    assert f"append-graph-tensor, warning, no fix: {why}" in shown(result)
    [entry] = json.loads(check("--output-format", "json", "user.py").stdout)
    assert (entry["fix"], entry["no_fix"]) == (None, why)


def test_a_file_that_is_left_out_by_the_settings_is_left() -> None:
    plant('extend-exclude = ["sizes.py"]\n', "torchlint.toml")
    assert "no fix: it would change sizes.py" in shown(check("--fix"))
    assert texts() == (USER, SIZES)


def test_text_on_stdin_is_one_file() -> None:
    result = check("--fix", "-", "--stdin-filename", "user.py", stdin=USER)
    assert result.stdout == USER
    assert "no fix: it would change sizes.py" in " ".join(result.stderr.split())


def test_unsafe_fixes_wait_to_be_asked_for(planted: PlantedRule) -> None:
    planted.fix_with(across(applicability=Applicability.UNSAFE))
    assert check("--fix").exit_code == 1
    assert texts() == (USER, SIZES.replace("zeros", "ones"))
    check("--fix", "--unsafe-fixes")
    assert texts() == (USER_AFTER, SIZES_AFTER)


def test_places_in_the_other_file_are_those_after_the_fixes_of_its_own(planted: PlantedRule) -> None:
    planted.fix_with(across(applicability=Applicability.UNSAFE))
    plant("import torch\ny = torch.zeros(1); size = 3\n", "sizes.py")
    [entry] = json.loads(check("--fix", "--output-format", "json").stdout)
    [other] = entry["fix"]["elsewhere"]
    assert other["path"] == "sizes.py"
    assert Path("sizes.py").read_text().splitlines()[1][other["edits"][0]["column"] - 1] == "3"


def test_text_that_no_longer_parses_takes_all_files_back(planted: PlantedRule) -> None:
    planted.fix_with(across("("))
    result = check("--fix")
    assert texts() == (USER, SIZES)
    assert result.exit_code == 2
    assert "leaves text that is not valid Python; its files are as they were" in shown(result)


@pytest.mark.parametrize("locked", ["user.py", "sizes.py"])
def test_a_read_only_file_keeps_the_other_as_it_was(locked: str) -> None:
    Path(locked).chmod(stat.S_IRUSR)
    result = check("--fix", "--output-format", "concise")
    assert texts() == (USER, SIZES)
    assert result.exit_code == 2
    assert f"the fixes cannot be written: the file is read-only ({locked}); its files are as they were" in shown(result)
    assert sorted(os.listdir()) == ["sizes.py", "user.py"]


def test_a_write_that_fails_halfway_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced, replace = [], os.replace

    def fail_the_second_time(source: Path, target: Path) -> None:
        if Path(target).suffix == ".py":
            replaced.append(target)
            if len(replaced) == 2:
                raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_the_second_time)
    result = check("--fix", "--output-format", "concise")
    assert len(replaced) == 3
    assert texts() == (USER, SIZES)
    assert "No space left on device" in result.stdout
    assert sorted(os.listdir()) == ["sizes.py", "user.py"]


def test_a_notebook_changes_with_the_file_that_it_imports() -> None:
    Path("user.py").unlink()
    plant(notebook("import torch\n", "from sizes import size\nx = torch.zeros(size)"), "user.ipynb")
    check("--fix")
    assert "torch.ones(size)" in Path("user.ipynb").read_text()
    assert Path("sizes.py").read_text() == SIZES_AFTER


def test_formats_show_the_edits_of_the_other_file() -> None:
    assert "in sizes.py:\n3 - size = 3\n3 + size = 4\n" in check("user.py", "sizes.py").stdout
    [_, entry] = json.loads(check("--output-format", "json").stdout)
    place = {"line": 3, "column": 8, "end_line": 3, "end_column": 9}
    assert entry["fix"]["elsewhere"] == [{"path": "sizes.py", "edits": [{**place, "text": "4"}]}]
    [run] = json.loads(check("--output-format", "sarif").stdout)["runs"]
    changes = run["results"][1]["fixes"][0]["artifactChanges"]
    assert [change["artifactLocation"]["uri"] for change in changes] == ["user.py", "sizes.py"]
    region = {"startLine": 3, "startColumn": 8, "endLine": 3, "endColumn": 9}
    assert changes[1]["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": "4"}}]
