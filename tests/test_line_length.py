"""How long lines may be is read from the project's own settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.engine import lint
from torchlint.files.line_length import configured, customary
from torchlint.files.project_files import ProjectFiles
from torchlint.finding import Edit
from torchlint.semantics.project import Project
from torchlint.source import Source

SETTINGS = [
    pytest.param("pyproject.toml", "[tool.black]\nline-length = 70\n", 70, id="Black"),
    pytest.param("pyproject.toml", "[tool.black]\n", 88, id="Black as it is"),
    pytest.param("pyproject.toml", "[tool.ruff]\nline-length = 101\n[tool.black]\n", 101, id="Ruff before Black"),
    pytest.param("pyproject.toml", "[tool.ruff.lint]\n[tool.black]\nline-length = 120\n", 120, id="what is said"),
    pytest.param("ruff.toml", "line-length = 79\n", 79, id="a file of Ruff's"),
    pytest.param("setup.cfg", "[flake8]\nmax-line-length = 160\n", 160, id="Flake8"),
    pytest.param("tox.ini", "[pycodestyle]\nmax_line_length = 99\n", 99, id="pycodestyle"),
    pytest.param(".flake8", "max-line-length = 99\n", None, id="no section"),
    pytest.param("pyproject.toml", "[tool.black\n", None, id="broken TOML"),
    pytest.param("pyproject.toml", '[tool.ruff]\nline-length = "wide"\n', None, id="no number"),
    pytest.param("pyproject.toml", "[tool]\nruff = 3\n", None, id="no table"),
    pytest.param("pyproject.toml", "tool = 3\n", None, id="no table of tools"),
    pytest.param("setup.cfg", "[metadata]\nname = x\n", None, id="nothing said"),
]


@pytest.mark.parametrize(("name", "text", "expected"), SETTINGS)
def test_settings(tmp_path: Path, name: str, text: str, expected: int | None) -> None:
    (tmp_path / name).write_text(text)
    assert configured(tmp_path) == expected


def test_the_nearest_settings_up_to_the_root_count(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[flake8]\nmax-line-length = 60\n")
    root = tmp_path / "project"
    (root / "package" / "deep").mkdir(parents=True)
    (root / ".git").mkdir()
    files = ProjectFiles()
    assert files.line_length(str(root / "package" / "deep" / "a.py")) is None
    (root / "package" / "setup.cfg").write_text("[flake8]\nmax-line-length = 77\n")
    assert ProjectFiles().line_length(str(root / "package" / "deep" / "a.py")) == 77
    assert ProjectFiles().line_length(str(root / "b.py")) is None


def test_a_file_is_also_named_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 140\n")
    (tmp_path / "package").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Project().line_length("package/a.py") == 140


def test_without_settings_the_files_own_lines_count_within_reason() -> None:
    assert customary(["x"]) == 100
    assert customary(["x" * 110]) == 110
    assert customary(["x" * 400]) == 120


@pytest.mark.parametrize(("longest", "limit"), [(60, 79), (79, 79), (80, 88), (97, 100), (104, 104), (150, 120)])
def test_the_lines_of_a_long_file_show_a_limit(longest: int, limit: int) -> None:
    assert customary(["x"] * 200 + ["x" * longest]) == limit


def test_a_fix_keeps_to_the_line_length_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 60\n")
    file = tmp_path / "a.py"
    file.write_text("import torch\n\ndef restored(net):\n    net.load_state_dict(torch.load('file.pt'))\n")
    findings = lint(Source.read(file), project=Project())
    (edit,) = next(finding.fix.edits for finding in findings if finding.fix is not None)
    assert edit.text == ",\n                                   weights_only=True"


def test_a_long_line_that_a_fix_has_written_sets_no_limit() -> None:
    source = Source.from_text("x = 1\n" * 200)
    longer = source.apply([Edit(0, 5, "x = " + "1" * 110)])
    assert longer.customary_length == source.customary_length == 79
