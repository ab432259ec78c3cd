"""Which files a call means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchlint.files.discovery import Discovery, discover
from torchlint.settings_file import CommandLine, Configuration


def plant(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("import torch\n")


def found(*paths: str, **options: bool) -> Discovery:
    return discover([Path(path) for path in paths or (".",)], Configuration(CommandLine(**options)))  # type: ignore[arg-type]


def names(*paths: str, **options: bool) -> list[str]:
    return [target.path.as_posix() for target in found(*paths, **options).targets]


def test_a_folder_gives_python_files_and_notebooks_in_order(project: Path) -> None:
    plant("b.py", "a/z.py", "a.py", "a/b.pyi", "n.ipynb", "t.txt", "c.pyc", "py")
    assert names() == ["a/b.pyi", "a/z.py", "a.py", "b.py", "n.ipynb"]


def test_what_is_left_out_by_default(project: Path) -> None:
    plant(
        "a.py",
        ".venv/x.py",
        "build/x.py",
        "p/node_modules/x.py",
        "p/__pycache__/x.py",
        ".git/x.py",
        "site-packages/x.py",
    )
    plant("my_env/pyvenv.cfg", "my_env/lib/x.py", ".ipynb_checkpoints/x.ipynb")
    assert names() == ["a.py"]


def test_a_file_that_is_named_is_taken_unless_excludes_are_forced(project: Path) -> None:
    plant("build/x.py", "notes.txt", "src/a.py")
    assert names("build/x.py", "notes.txt") == ["build/x.py", "notes.txt"]
    assert names("build/x.py", "src/a.py", force_exclude=True) == ["src/a.py"]
    assert names("build", force_exclude=True) == []


def test_a_file_is_taken_once(project: Path) -> None:
    plant("a/x.py", "y.py")
    Path("z.py").symlink_to("y.py")
    assert names("a", "a/x.py", "./a/../a/x.py", ".") == ["a/x.py", "y.py"]


def test_gitignore_is_honoured(project: Path) -> None:
    plant("a.py", "gen/x.py", "gen/keep.py", "deep/er/scratch_1.py", "deep/er/kept.py", "deep/only/x.py", "out/x.py")
    Path(".git/info").mkdir(parents=True)
    Path(".git/info/exclude").write_text("out\n")
    Path(".gitignore").write_text("# generated\n/gen/*\n!/gen/keep.py\nscratch_*.py\n")
    Path("deep/.gitignore").write_text("only/\n")
    assert names() == ["a.py", "deep/er/kept.py", "gen/keep.py"]
    assert names("deep") == ["deep/er/kept.py"]
    assert names("gen/x.py") == ["gen/x.py"]
    assert names("gen/x.py", force_exclude=True) == []
    Path("torchlint.toml").write_text("respect-gitignore = false\n")
    assert "gen/x.py" in names()


def test_settings_of_inner_folders_count_for_their_files(project: Path) -> None:
    plant("a.py", "inner/x.py", "inner/skip/y.py")
    Path("inner/torchlint.toml").write_text('extend-exclude = ["skip"]\nselect = ["MEM01"]\n')
    targets = {target.path.as_posix(): target.settings for target in found().targets}
    assert set(targets) == {"a.py", "inner/x.py"}
    assert "SYNC01" not in targets["inner/x.py"].codes(Path("inner/x.py"))


def test_loops_of_links_end(project: Path) -> None:
    plant("a/x.py")
    Path("a/up").symlink_to("..", target_is_directory=True)
    Path("a/self").symlink_to("self")
    Path("dangling.py").symlink_to("nowhere.py")
    Path("circle.py").symlink_to("circle.py")
    assert names() == ["a/x.py"]


def test_a_link_to_a_folder_that_is_named_is_walked(project: Path) -> None:
    plant("real/x.py")
    Path("link").symlink_to("real", target_is_directory=True)
    assert names("link") == ["link/x.py"]
    assert len(names("link", "real")) == 1


def test_what_cannot_be_taken_is_said(project: Path) -> None:
    plant("a.py")
    os.mkfifo("pipe.py")
    Path("dangling.py").symlink_to("nowhere.py")
    result = found("a.py", "gone.py", "pipe.py", "dangling.py")
    assert [target.path.name for target in result.targets] == ["a.py"]
    assert result.missing == [Path("gone.py")]
    assert [path.name for path, _ in result.problems] == ["pipe.py", "dangling.py"]
    assert names() == ["a.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_a_problem(project: Path) -> None:
    plant("closed/x.py", "a.py")
    Path("closed").chmod(0)
    try:
        assert [path.name for path, _ in found().problems] == ["closed"]
    finally:
        Path("closed").chmod(0o755)


def test_paths_outside_of_the_working_directory_are_absolute(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant("one/a.py", "two/b.py")
    monkeypatch.chdir("one")
    assert names("../two") == [(project / "two" / "b.py").as_posix()]


def test_names_of_every_kind_are_taken(project: Path) -> None:
    plant("with space.py", "new\nline.py", "ümlaut.py", "-dash.py", "[brackets].py")
    assert len(names()) == 5
