"""Many runs at once on one cache folder: what one writes does the others no harm."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from time import monotonic

import pytest

from tests.conftest import PlantedRule
from torchlint.config import Settings
from torchlint.files.discovery import Target
from torchlint.finding import Finding
from torchlint.running.cache import FOLDER, remove
from torchlint.running.runner import Options, run

CLEAN = "import torch\nx = torch.ones({})  # zeros\n"
DIRTY = "import torch\nx = torch.zeros(3)\n"
CLEAN_FILES = 8
RUNS, ROUNDS = 10, 4

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the runs are forked")


def found(folder: Path, settings: Settings) -> list[Finding]:
    targets = [Target(path, settings) for path in sorted(folder.glob("*.py"))]
    results = run(targets, Options(jobs=1, cache_folder=folder / FOLDER))
    return [finding for result in results for finding in result.findings]


def test_ten_runs_on_one_cache_folder_find_the_same_and_leave_it_whole(project: Path, planted: PlantedRule) -> None:
    for number in range(CLEAN_FILES):
        (project / f"clean{number}.py").write_text(CLEAN.format(number))
    (project / "dirty.py").write_text(DIRTY)
    expected = found(project, planted.settings)
    assert len(expected) == 1
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(RUNS + 1), context.SimpleQueue()

    def rounds() -> None:
        for _ in range(ROUNDS):
            barrier.wait(60)
            answers.put(found(project, planted.settings) == expected)

    runs = [context.Process(target=rounds) for _ in range(RUNS)]
    for process in runs:
        process.start()
    for _ in range(ROUNDS):
        barrier.wait(60)
        deadline = monotonic() + 0.3
        while monotonic() < deadline:
            remove(project / FOLDER)
    assert [answers.get() for _ in range(RUNS * ROUNDS)] == [True] * RUNS * ROUNDS
    for process in runs:
        process.join(60)
    assert [process.exitcode for process in runs] == [0] * RUNS
    assert found(project, planted.settings) == expected
    sizes = {file.name: file.stat().st_size for file in (project / FOLDER).iterdir()}
    assert sorted(map(len, sizes)) == [len(".gitignore"), len("CACHEDIR.TAG"), 32]
    assert max(sizes.values()) == 16 * CLEAN_FILES
    assert list(project.glob(f"{FOLDER}?*")) == []
