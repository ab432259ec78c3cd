"""How fixed files take the place of the old ones: all of a fix or none, and never half a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import PlantedRule
from torchlint.fixing.passes import Fixed, fix_source
from torchlint.fixing.writing import WriteError, write
from torchlint.source import Source

TEXT = "import torch\nx = torch.zeros(3)\ny = torch.zeros(4)\n"


@pytest.fixture
def fixed_file(tmp_path: Path, planted: PlantedRule) -> Callable[[Path], Fixed]:
    def make(path: Path) -> Fixed:
        path.write_text(TEXT)
        return fix_source(Source.read(path), planted.settings)

    return make


def test_writing_keeps_the_mode_and_leaves_nothing_behind(tmp_path: Path, fixed_file: Callable[[Path], Fixed]) -> None:
    path = tmp_path / "a.py"
    fixed = fixed_file(path)
    path.chmod(0o754)
    write(fixed)
    assert path.read_text() == TEXT.replace("zeros", "ones")
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_link_stays_a_link(tmp_path: Path, planted: PlantedRule) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.py", tmp_path / "link.py"
    target.write_text(TEXT)
    link.symlink_to(target)
    write(fix_source(Source.read(link), planted.settings))
    assert link.is_symlink()
    assert "ones" in target.read_text()


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path, fixed_file: Callable[[Path], Fixed]) -> None:
    fixed = fixed_file(tmp_path / "a.py")
    (tmp_path / "a.py").write_text("other\n")
    with pytest.raises(WriteError, match="changed"):
        write(fixed)
    assert (tmp_path / "a.py").read_text() == "other\n"


def test_a_read_only_file_is_left(tmp_path: Path, fixed_file: Callable[[Path], Fixed]) -> None:
    fixed = fixed_file(tmp_path / "a.py")
    (tmp_path / "a.py").chmod(0o444)
    with pytest.raises(WriteError, match="read-only"):
        write(fixed)
    assert (tmp_path / "a.py").read_text() == TEXT


def test_a_file_that_went_away_is_not_made_anew(tmp_path: Path, fixed_file: Callable[[Path], Fixed]) -> None:
    fixed = fixed_file(tmp_path / "a.py")
    (tmp_path / "a.py").unlink()
    with pytest.raises(WriteError, match="No such file"):
        write(fixed)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_said(
    tmp_path: Path, fixed_file: Callable[[Path], Fixed], monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = fixed_file(tmp_path / "a.py")

    def refuse(**options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(WriteError, match="Permission denied"):
        write(fixed)
    assert (tmp_path / "a.py").read_text() == TEXT


@pytest.mark.parametrize("moment", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full disk", "ctrl-c"]
)
def test_an_interruption_leaves_the_old_file_and_no_other(
    tmp_path: Path,
    fixed_file: Callable[[Path], Fixed],
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    error: BaseException,
) -> None:
    fixed = fixed_file(tmp_path / "a.py")

    def interrupt(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(os, moment, interrupt)
    with pytest.raises((WriteError, KeyboardInterrupt)):
        write(fixed)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["a.py"]
    assert (tmp_path / "a.py").read_text() == TEXT
