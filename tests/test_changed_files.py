"""`--diff-base` and `--staged` in real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_check import check, plant
from tests.test_notebook import notebook

ZEROS = "import torch\nx = torch.zeros(3)\n"
MORE = ZEROS + "y = torch.zeros(4)\n"

pytestmark = [
    pytest.mark.usefixtures("planted"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]


def git(*arguments: str, **options: Any) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *identity, *arguments], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(message: str = "work") -> None:
    git("add", "-A")
    git("commit", "-qm", message)


@pytest.fixture
def repository(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With one commit on `main`, of which a.py has a finding; the working directory."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = project / "repository"
    root.mkdir()
    monkeypatch.chdir(root)
    git("init", "-q", "-b", "main", ".")
    plant(ZEROS)
    commit()
    return root


def found(*arguments: str) -> list[str]:
    result = check(*(arguments or (".",)), "--no-cache", "--output-format", "concise")
    assert result.exit_code == bool(result.stdout), result.stderr
    return [line.partition(": ")[0].removesuffix(":5") for line in result.stdout.splitlines()]


def since(base: str = "main", *paths: str) -> list[str]:
    return found(*(paths or (".",)), "--diff-base", base)


def test_nothing_changed(repository: Path) -> None:
    result = check(".", "--diff-base", "main")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No line to check has changed." in result.stderr


def test_only_changed_lines_count(repository: Path) -> None:
    git("switch", "-qc", "topic")
    plant("import torch\n# moved\nx = torch.zeros(3)\ny = torch.zeros(4)\n")
    assert since() == ["a.py:4"]
    commit()
    assert since() == ["a.py:4"]
    assert since("HEAD") == []
    assert since("HEAD~1") == ["a.py:4"]


def test_what_the_base_did_meanwhile_does_not_count(repository: Path) -> None:
    plant(MORE, "b.py")
    git("switch", "-qc", "topic")
    git("switch", "-q", "main")
    plant("import torch\nx = torch.zeros(5)\n")
    commit()
    git("switch", "-q", "topic")
    assert since("main", "a.py") == []


def test_head_may_be_detached(repository: Path) -> None:
    plant(MORE)
    commit()
    git("switch", "-q", "--detach")
    assert since("HEAD~1") == ["a.py:3"]


def test_untracked_files_are_new_and_ignored_ones_only_where_they_are_named(repository: Path) -> None:
    plant(ZEROS, "new.py")
    plant(ZEROS, "out/made.py")
    plant("out/\n", ".gitignore")
    assert since() == ["new.py:2"]
    assert since("main", "out/made.py") == ["out/made.py:2"]


def test_a_renamed_file_has_what_it_had(repository: Path) -> None:
    filler = "".join(f"n{number} = {number}\n" for number in range(30))
    plant(ZEROS + filler)
    commit()
    Path("a.py").rename("b.py")
    plant(ZEROS + filler + "y = torch.zeros(4)\n", "b.py")
    git("add", "-A")
    assert since() == ["b.py:33"]


def test_deleted_files_are_no_matter(repository: Path) -> None:
    plant(ZEROS, "b.py")
    Path("a.py").unlink()
    assert since() == ["b.py:2"]


def test_a_path_that_was_a_link_is_new(repository: Path) -> None:
    Path("link.py").symlink_to("a.py")
    commit()
    Path("link.py").unlink()
    plant(ZEROS, "link.py")
    assert since() == ["link.py:2"]


@pytest.mark.parametrize("name", ["a b.py", "new\nline.py", "-x.py", "ü.py", 'quo"te.py', ":(glob)x.py"])
def test_names_are_taken_as_they_are(name: str, repository: Path) -> None:
    plant(ZEROS, name)
    commit()
    plant(MORE, name)
    plant(ZEROS, "other " + name)
    result = check(".", "--diff-base", "main", "--output-format", "json", "--no-cache")
    assert '"line": 3' in result.stdout
    assert result.stdout.count('"code"') == 2


def test_a_run_in_a_folder_below(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(ZEROS, "sub/b.py")
    commit()
    plant(MORE, "sub/b.py")
    plant(MORE)
    monkeypatch.chdir("sub")
    git("config", "diff.relative", "true")
    assert since() == ["b.py:3"]
    assert since("main", "..") == [f"{repository / 'a.py'}:3", "b.py:3"]


def test_cells_of_notebooks(repository: Path) -> None:
    path = plant(notebook("import torch", "x = torch.zeros(3)"), "a.ipynb")
    commit()
    path.write_bytes(notebook("import torch", "x = torch.zeros(3)", "y = torch.zeros(4)"))
    assert since() == ["a.ipynb:cell 3:1"]


def test_files_of_a_submodule_are_compared_with_what_the_project_had(repository: Path, project: Path) -> None:
    inner = project / "inner"
    inner.mkdir()
    git("init", "-q", "-b", "trunk", ".", cwd=inner)
    (inner / "b.py").write_text(ZEROS)
    git("add", "-A", cwd=inner)
    git("commit", "-qm", "inner", cwd=inner)
    git("submodule", "add", "-q", str(inner), "inner")
    assert since() == ["inner/b.py:2"]
    commit()
    assert since() == []
    plant(MORE, "inner/b.py")
    assert since() == ["inner/b.py:3"]
    git("commit", "-qam", "more", cwd="inner")
    assert since() == ["inner/b.py:3"]


def test_fixes_keep_to_changed_lines(repository: Path) -> None:
    plant(MORE)
    result = check(".", "--diff-base", "main", "--fix")
    assert result.exit_code == 0
    assert Path("a.py").read_text() == ZEROS + "y = torch.ones(4)\n"


def test_a_file_with_findings_on_old_lines_is_not_taken_for_clean(repository: Path) -> None:
    plant(ZEROS + "y = 1\n")
    assert check(".", "--diff-base", "main").exit_code == 0
    assert check(".").exit_code == 1


class TestStaged:
    def test_only_what_is_staged_counts(self, repository: Path) -> None:
        plant(MORE)
        plant(ZEROS, "new.py")
        assert found("--staged") == []
        git("add", "a.py")
        assert found("--staged") == ["a.py:3"]

    def test_a_partly_staged_file_is_judged_as_the_commit_will_have_it(self, repository: Path) -> None:
        plant(MORE)
        git("add", "a.py")
        plant("# one\n# two\n" + ZEROS + "z = torch.zeros(5)\n")
        assert found("--staged") == ["a.py:3"]

    def test_fixes_of_a_partly_staged_file_are_refused(self, repository: Path) -> None:
        plant(MORE)
        git("add", "a.py")
        text = MORE + "z = 1\n"
        plant(text)
        result = check("--staged", "--fix", "--output-format", "concise")
        assert result.exit_code == 2
        assert "there are changes that are not staged" in result.stdout
        assert Path("a.py").read_text() == text
        plant(MORE)
        assert check("--staged", "--fix").exit_code == 0
        assert Path("a.py").read_text() == ZEROS + "y = torch.ones(4)\n"

    def test_before_the_first_commit_everything_is_new(self, project: Path) -> None:
        git("init", "-q", ".")
        plant(ZEROS)
        git("add", "a.py")
        assert found("--staged") == ["a.py:2"]

    def test_a_hook_judges_the_index_that_git_gives_it(self, repository: Path) -> None:
        plant(MORE)
        plant(MORE, "b.py")
        git("add", "a.py", "b.py")
        plant("#!/bin/sh\npython -c \"import os; print(os.environ.get('GIT_INDEX_FILE'))\" > .git/index-file\n", "hook")
        Path("hook").chmod(0o755)
        Path("hook").rename(".git/hooks/pre-commit")
        git("commit", "-qm", "only one", "b.py")
        assert Path(".git/index-file").read_text().strip() != ".git/index"
        assert found("--staged") == ["a.py:3"]


class TestMistakes:
    def message(self, *arguments: str) -> str:
        result = check(".", *arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output
        return result.stderr

    def test_an_unknown_revision_names_the_nearest(self, repository: Path) -> None:
        assert "no commit `mian`" in self.message("--diff-base", "mian")
        assert "did you mean `main`?" in self.message("--diff-base", "mian")

    def test_a_branch_of_a_remote(self, repository: Path) -> None:
        git("update-ref", "refs/remotes/origin/trunk", "HEAD")
        assert "did you mean `origin/trunk`?" in self.message("--diff-base", "trunk")

    def test_a_revision_that_looks_like_an_option(self, repository: Path) -> None:
        assert "no commit `--output=x`" in self.message("--diff-base", "--output=x")
        assert not Path("x").exists()

    def test_a_shallow_clone_says_how_to_deepen_it(
        self, repository: Path, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        git("switch", "-qc", "topic")
        plant(MORE)
        commit()
        git("clone", "-q", "--depth", "1", "--no-single-branch", f"file://{repository}", str(project / "clone"))
        monkeypatch.chdir(project / "clone")
        assert "no commit in common" in self.message("--diff-base", "origin/main")
        assert "`fetch-depth: 0`" in self.message("--diff-base", "origin/main")
        assert "`fetch-depth: 0`" in self.message("--diff-base", "HEAD~1")
        git("fetch", "-q", "--unshallow")
        assert since("origin/main") == ["a.py:3"]

    def test_histories_without_a_common_commit(self, repository: Path) -> None:
        git("switch", "-q", "--orphan", "other")
        plant(ZEROS)
        commit("another beginning")
        assert "no commit in common" in self.message("--diff-base", "main")
        assert "shallow" not in self.message("--diff-base", "main")

    def test_a_repository_without_commits(self, project: Path) -> None:
        git("init", "-q", ".")
        plant(ZEROS)
        assert "no commit" in self.message("--diff-base", "HEAD")

    def test_outside_of_a_repository(self, project: Path) -> None:
        plant(ZEROS)
        assert "a.py is in no git repository" in self.message("--diff-base", "main")
        assert "a.py is in no git repository" in self.message("--staged")

    def test_without_git(self, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        assert "git is not installed" in self.message("--diff-base", "main")

    def test_both_at_once(self, repository: Path) -> None:
        assert "exclude each other" in self.message("--diff-base", "main", "--staged")
