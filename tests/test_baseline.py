"""The baseline file: what it holds, what it forgives, and what it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_check import call, check, plant
from tests.conftest import PlantedRule
from torchlint.config import ConfigError
from torchlint.filters.baseline import FILE, Baseline
from torchlint.running import work
from torchlint.running.task import Result, Task

ZEROS = "import torch\n\ndef f():\n    x = torch.zeros(3)\n    return x\n"

pytestmark = pytest.mark.usefixtures("project", "planted")


@pytest.fixture
def accepted() -> Path:
    plant('select = ["MEM01", "LINT"]\n', "torchlint.toml")
    path = plant(ZEROS)
    assert call("baseline").exit_code == 0
    return path


def found(*arguments: str) -> list[str]:
    result = check("--baseline", FILE, "--output-format", "concise", *arguments)
    assert result.exit_code == bool(result.stdout), result.stderr
    return [line.partition(" ")[0] for line in result.stdout.splitlines()]


def test_old_findings_are_left_out(accepted: Path) -> None:
    assert found() == []
    assert "found nothing besides the 1 in the baseline" in check("--baseline", FILE).stderr
    assert check().exit_code == 1


def test_an_entry_takes_one_line(accepted: Path) -> None:
    lines = Path(FILE).read_text().splitlines()
    assert [json.loads(line)["path"] for line in lines if line.startswith("    ")] == ["a.py"]
    assert len(lines) == 6


MOVED = [
    pytest.param("# new\n\n" + ZEROS, id="lower down"),
    pytest.param(ZEROS.replace("zeros(3)", "zeros(\n        3,\n    )"), id="in another layout"),
    pytest.param(ZEROS.replace("\n", "\r\n"), id="with other newlines"),
]
NEW = [
    pytest.param(ZEROS + "    torch.zeros(4)\n", ["a.py:6:5:"], id="another finding"),
    pytest.param(ZEROS.replace("zeros(3)", "zeros(4)"), ["a.py:4:9:"], id="as many, but another"),
    pytest.param(ZEROS.replace("def f", "def g"), ["a.py:4:9:"], id="in another function"),
    pytest.param(ZEROS.replace("    return x", "    x = torch.zeros(3)"), ["a.py:5:9:"], id="the same once more"),
]


@pytest.mark.parametrize("text", MOVED)
def test_moved_lines_stay_matched(text: str, accepted: Path) -> None:
    accepted.write_bytes(text.encode())
    assert found() == []


@pytest.mark.parametrize(("text", "places"), NEW)
def test_new_findings_are_found(text: str, places: list[str], accepted: Path) -> None:
    accepted.write_text(text)
    assert found() == places


def test_the_same_finding_in_another_file_is_new(accepted: Path) -> None:
    accepted.rename("b.py")
    assert found() == ["b.py:4:9:"]


def test_settings_name_the_baseline_relative_to_themselves(accepted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("torchlint.toml").open("a") as settings:
        settings.write(f'baseline = "{FILE}"\n')
    plant(ZEROS, "sub/b.py")
    monkeypatch.chdir("sub")
    assert check("..", "--output-format", "concise").stdout.startswith("b.py:4:9: MEM01")
    assert check("../a.py").exit_code == 0
    assert check("../a.py", "--no-baseline").exit_code == 1


def test_stale_entries_warn_and_are_taken_out(accepted: Path) -> None:
    accepted.write_text(ZEROS.replace("zeros", "ones"))
    assert f"{FILE}: 1 finding of it is not found any more" in check("--baseline", FILE).stderr
    assert call("baseline").exit_code == 0
    assert len(Baseline.read(Path(FILE))) == 0


def test_only_what_was_looked_for_can_be_stale(accepted: Path) -> None:
    plant(ZEROS.replace("zeros", "ones"), "b.py")
    assert "any more" not in check("b.py", "--baseline", FILE).stderr
    accepted.write_text("import torch\n")
    assert "any more" not in call("check", "--select", "SYNC01", "--baseline", FILE).stderr
    assert "any more" in check("--baseline", FILE).stderr


def test_entries_of_files_that_are_gone_are_stale(accepted: Path) -> None:
    accepted.unlink()
    plant(ZEROS.replace("zeros", "ones"), "b.py")
    assert "any more" in check("--baseline", FILE).stderr


def test_new_findings_come_in_only_when_accepted(accepted: Path) -> None:
    accepted.write_text(ZEROS + "    torch.zeros(4)\n")
    result = call("baseline")
    assert result.exit_code == 1
    assert "1 finding is not in it; --accept-new takes them in." in result.stderr
    assert len(Baseline.read(Path(FILE))) == 1
    assert call("baseline", "--accept-new").exit_code == 0
    assert found() == []


def test_entries_of_files_that_were_not_looked_at_stay(accepted: Path) -> None:
    plant(ZEROS, "sub/b.py")
    assert call("baseline", "sub", "--accept-new").exit_code == 0
    assert found() == []


def test_fixes_leave_the_baseline_alone(accepted: Path) -> None:
    text = ZEROS + "    torch.zeros(4)\n"
    accepted.write_text(text)
    assert check("--fix", "--baseline", FILE).exit_code == 0
    assert accepted.read_text() == text.replace("zeros(4)", "ones(4)")


def test_a_baselined_file_is_not_taken_for_clean(accepted: Path) -> None:
    assert found() == []
    assert check().exit_code == 1


def test_what_a_check_found_clean_is_not_looked_at_again(accepted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant("import torch\n", "clean.py")
    check()
    looked_at: list[str] = []
    process = work.process

    def recording(task: Task) -> Result:
        looked_at.append(task.path.name)
        return process(task)

    monkeypatch.setattr(work, "process", recording)
    assert call("baseline").exit_code == 0
    assert looked_at == ["a.py"]


def test_syntax_errors_of_old_files_can_be_accepted() -> None:
    plant('select = ["MEM01", "LINT"]\n', "torchlint.toml")
    plant("import torch\nprint 'zeros'\n", "old.py")
    assert call("baseline").exit_code == 0
    assert found() == []


BROKEN = [
    pytest.param("", "not JSON", id="empty"),
    pytest.param("<<<<<<< HEAD\n", "not JSON", id="merge conflict"),
    pytest.param("[]", "version 1 was expected, not None", id="not an object"),
    pytest.param('{"version": 2, "findings": []}', "version 1 was expected, not 2", id="another version"),
    pytest.param('{"version": 1}', "`findings` must list", id="no findings"),
    pytest.param('{"version": 1, "findings": [{"path": "a.py"}]}', "`findings` must list", id="half an entry"),
    pytest.param("[" * 100_000, "not JSON", id="deep"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_is_no_baseline_is_refused_with_a_remedy(text: str, message: str) -> None:
    plant(text, FILE)
    with pytest.raises(ConfigError, match=message) as error:
        Baseline.read(Path(FILE))
    assert "run `torchlint baseline`" in str(error.value)
    plant(ZEROS)
    for result in (check("--baseline", FILE), call("baseline", "--baseline", FILE)):
        assert result.exit_code == 2
    assert Path(FILE).read_text() == text


def test_a_baseline_that_is_not_there_says_how_to_write_it() -> None:
    plant(ZEROS)
    result = check("--baseline", "gone.json")
    assert result.exit_code == 2
    assert "`torchlint baseline --baseline gone.json` writes it" in result.stderr


def test_a_folder_that_cannot_be_written_is_named(planted: PlantedRule) -> None:
    plant(ZEROS)
    result = call("baseline", "--baseline", "gone/baseline.json")
    assert result.exit_code == 2
    assert "gone/baseline.json: No such file or directory" in result.stderr
