from __future__ import annotations

from pathlib import Path

import pytest
from torchlint.runtime_check import overlay
from torchlint.runtime_check.overlay import OverlayError, plan


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    big = b"x" * (overlay.SMALL + 1)
    return write(
        tmp_path / "project",
        {
            "train.py": "print(1)\n",
            "package/model.py": "a = 1\n",
            "package/weights.bin": big,
            "settings.yaml": "lr: 1\n",
            "data/train.bin": big,
            "runs/old/events": "written before",
            "log/__init__.py": "",
            "checkpoints/last.pt": big,
            "package/__pycache__/model.pyc": "stale",
        },
    )


def test_code_is_copied_with_the_changes_and_data_are_linked(project: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    plan(project, ["package/model.py"], []).build(tree, {"package/model.py": b"a = 2\n"})
    assert (tree / "package/model.py").read_text() == "a = 2\n"
    assert (project / "package/model.py").read_text() == "a = 1\n"
    assert not (tree / "train.py").is_symlink()
    assert (tree / "data/train.bin").resolve() == project / "data/train.bin"
    assert (tree / "package/weights.bin").is_symlink()
    assert not (tree / "package/__pycache__").exists()


def test_a_file_that_is_gone_since_the_folder_was_read_is_left_out(project: Path, tmp_path: Path) -> None:
    tree, plans = tmp_path / "tree", plan(project, ["train.py"], [])
    (project / "settings.yaml").unlink()
    plans.build(tree, {"train.py": b"print(2)\n"})
    assert (tree / "train.py").read_text() == "print(2)\n"
    assert not (tree / "settings.yaml").exists()


def test_building_again_forgets_what_the_run_before_wrote(project: Path, tmp_path: Path) -> None:
    tree, plans = tmp_path / "tree", plan(project, ["train.py"], [])
    plans.build(tree, {"train.py": b"print(2)\n"})
    (tree / "runs/new").write_text("written by a run")
    plans.build(tree, {})
    assert (tree / "train.py").read_text() == "print(1)\n"
    assert list((tree / "runs").iterdir()) == []


def test_output_folders_start_empty_unless_the_command_names_them(project: Path, tmp_path: Path) -> None:
    plan(project, [], ["python", "train.py"]).build(tmp_path / "fresh", {})
    assert list((tmp_path / "fresh/checkpoints").iterdir()) == []
    assert (tmp_path / "fresh/log/__init__.py").exists()
    plan(project, [], ["python", "train.py", "--resume=checkpoints/last.pt"]).build(tmp_path / "resumed", {})
    assert (tmp_path / "resumed/checkpoints/last.pt").is_symlink()


def test_a_large_folder_without_code_is_one_link(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "LARGE", 3)
    write(project, {f"images/{number}/{number}.png": "" for number in range(5)})
    plan(project, [], []).build(tmp_path / "tree", {})
    assert (tmp_path / "tree/images").is_symlink()


def test_a_link_within_the_project_stays_within_the_copy(project: Path, tmp_path: Path) -> None:
    (project / "alias.py").symlink_to("package/model.py")
    tree = tmp_path / "tree"
    plan(project, ["package/model.py"], []).build(tree, {"package/model.py": b"a = 2\n"})
    assert (tree / "alias.py").read_text() == "a = 2\n"


def test_a_changed_file_must_exist(project: Path) -> None:
    with pytest.raises(OverlayError, match=r"missing\.py"):
        plan(project, ["missing.py"], [])


def test_a_linked_file_that_was_overwritten_is_seen(project: Path) -> None:
    plans = plan(project, [], [])
    assert plans.overwritten() == []
    (project / "data/train.bin").write_bytes(b"clobbered")
    assert plans.overwritten() == ["data/train.bin"]
