"""The cache of clean files: it saves work, and nothing in it can do harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import PlantedRule
from torchlint.config import Settings
from torchlint.files.discovery import Target
from torchlint.running import cache as cache_module
from torchlint.running import work
from torchlint.running.cache import Cache, remove
from torchlint.running.runner import Options, run
from torchlint.running.task import Result, Task

CLEAN = b"import torch\nx = torch.ones(3)  # zeros\n"
DIRTY = b"import torch\nx = torch.zeros(3)\n"


@pytest.fixture
def processed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were really looked at."""
    names: list[str] = []
    process = work.process

    def recording(task: Task) -> Result:
        names.append(task.path.name)
        return process(task)

    monkeypatch.setattr(work, "process", recording)
    return names


def lint_all(folder: Path, settings: Settings) -> list[Result]:
    targets = [Target(path, settings) for path in sorted(folder.glob("*.py"))]
    return run(targets, Options(jobs=1, cache_folder=folder / ".torchlint_cache"))


def test_a_clean_file_is_looked_at_once(project: Path, planted: PlantedRule, processed: list[str]) -> None:
    (project / "clean.py").write_bytes(CLEAN)
    (project / "dirty.py").write_bytes(DIRTY)
    first = lint_all(project, planted.settings)
    assert lint_all(project, planted.settings)[0].findings == next(r for r in first if r.findings).findings
    assert processed == ["clean.py", "dirty.py", "dirty.py"]


def test_changes_are_seen(
    project: Path, planted: PlantedRule, processed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.py").write_bytes(CLEAN)
    lint_all(project, planted.settings)
    lint_all(project, Settings.selecting("MEM01", "SYNC01"))
    (project / "a.py").write_bytes(CLEAN + b"\n")
    lint_all(project, planted.settings)
    monkeypatch.setattr(cache_module, "tool_fingerprint", lambda: "0" * 32)
    lint_all(project, planted.settings)
    assert processed == ["a.py"] * 4


@pytest.mark.parametrize("name", ["README.md", "requirements.txt", "requirements/base.txt", "setup.cfg", "ruff.toml"])
def test_a_change_of_what_the_project_says_of_itself_is_seen(
    name: str, project: Path, planted: PlantedRule, processed: list[str]
) -> None:
    (project / "a.py").write_bytes(CLEAN)
    spoken = project / name
    spoken.parent.mkdir(exist_ok=True)
    for said in ("# PyTorch 1.3", "# PyTorch 1.13"):
        spoken.write_text(said)
        lint_all(project, planted.settings)
        lint_all(project, planted.settings)
    assert processed == ["a.py"] * 2


def test_the_folder_hides_itself_and_drops_what_other_versions_left(
    project: Path, planted: PlantedRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.py").write_bytes(CLEAN)
    folder = project / ".torchlint_cache"
    monkeypatch.setattr(cache_module, "tool_fingerprint", lambda: "0" * 32)
    lint_all(project, planted.settings)
    monkeypatch.setattr(cache_module, "tool_fingerprint", lambda: "1" * 32)
    lint_all(project, planted.settings)
    assert sorted(path.name for path in folder.iterdir()) == [".gitignore", "1" * 32, "CACHEDIR.TAG"]
    assert (folder / ".gitignore").read_text() == "*\n"
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


@pytest.mark.parametrize(
    "data", [b"", b"\x00" * 7, b"garbage" * 1_000, None], ids=["empty", "short", "garbage", "folder"]
)
def test_a_damaged_cache_does_no_harm(data: bytes | None, project: Path, planted: PlantedRule) -> None:
    (project / "a.py").write_bytes(DIRTY)
    (project / "b.py").write_bytes(CLEAN)
    folder = project / ".torchlint_cache"
    folder.mkdir()
    if data is None:
        (folder / cache_module.tool_fingerprint()).mkdir()
    else:
        (folder / cache_module.tool_fingerprint()).write_bytes(data)
    assert [len(result.findings) for result in lint_all(project, planted.settings) if result.findings] == [1]


def test_a_cache_that_cannot_be_written_is_no_error(project: Path, planted: PlantedRule) -> None:
    (project / "a.py").write_bytes(CLEAN)
    (project / ".torchlint_cache").write_text("a file where the folder should be")
    assert lint_all(project, planted.settings) != []


def test_old_entries_go_when_there_are_too_many(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_MOST_ENTRIES", 2)
    folder, digests = project / "c", [bytes([number]) * 16 for number in range(4)]
    for new in (digests[:3], digests[3:]):
        cache = Cache(folder)
        assert not cache.is_clean(digests[3])
        cache.is_clean(digests[0])
        for digest in new:
            cache.add_clean(digest)
        cache.save()
    kept = Cache(folder)
    assert [kept.is_clean(digest) for digest in digests] == [True, False, False, True]


def test_only_a_cache_folder_is_removed(project: Path) -> None:
    (project / "mine").mkdir()
    assert not remove(project / "mine")
    assert not remove(project / "gone")
    assert (project / "mine").is_dir()
