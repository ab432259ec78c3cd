"""Many files: order, processes that die, and fixed trees."""

from __future__ import annotations

import os
import signal
import weakref
from pathlib import Path
from typing import Any

import pytest

from torchlint.config import Settings
from torchlint.files.discovery import Target
from torchlint.running import runner, work
from torchlint.running.runner import Options, fix_tree, run
from torchlint.running.task import Result, Task
from torchlint.semantics.model import Model

LEAK = "import torch\nx = 1  # torchlint: ignore[NOPE]\n"
CALLS = """
import torch
from steps import step
for x in batches:
    print(step(torch.nn.Linear(2, 2), x).item())
"""
SETTINGS = Settings.selecting("LINT")


def plant(folder: Path, count: int) -> list[Target]:
    targets = []
    for number in range(count):
        path = folder / f"m{number:02}.py"
        path.write_text(LEAK + "# filler\n" * (count - number) * 50)
        targets.append(Target(path, SETTINGS))
    return targets


def everything(results: list[Result]) -> list[tuple[str, str, int]]:
    return [(f.path, f.code, f.line) for result in results for f in result.findings]


def test_results_do_not_depend_on_the_number_of_processes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_BYTES_WORTH_A_WORKER", 1)
    targets = plant(project, 12)
    alone = run(targets, Options(jobs=1))
    assert everything(alone) == everything(run(targets, Options(jobs=3)))
    assert [path for path, *_ in everything(alone)] == [target.path.as_posix() for target in targets]


def test_a_file_that_cannot_be_read_is_a_finding_and_the_rest_goes_on(project: Path) -> None:
    targets = plant(project, 3)
    targets[1].path.unlink()
    results = run(targets, Options(jobs=1))
    assert [code for _, code, _ in everything(results)] == ["LINT03", "LINT02", "LINT03"]


def test_progress_is_told_about_every_file(project: Path) -> None:
    told: list[tuple[int, int]] = []
    run(plant(project, 3), Options(jobs=1), lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def die_on_the_second(task: Task) -> Result:
    if task.path.name == "m01.py":
        os.kill(os.getpid(), signal.SIGKILL)
    return real_process(task)


real_process = work.process


def test_a_process_that_dies_costs_one_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_BYTES_WORTH_A_WORKER", 1)
    monkeypatch.setattr(work, "process", die_on_the_second)
    results = run(plant(project, 4), Options(jobs=2))
    assert [code for _, code, _ in everything(results)] == ["LINT03", "LINT04", "LINT03", "LINT03"]


def test_files_side_by_side_are_for_one_process_and_runs_get_shorter(project: Path) -> None:
    targets = plant(project, 16)
    tasks = [Task(target.path, target.path.read_bytes(), target.settings) for target in reversed(targets)]
    runs = runner._runs(tasks, 2)
    assert [task.path for run in runs for task in run] == [target.path for target in targets]
    lengths = [len(run) for run in runs]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (3, 1)


def test_no_run_is_so_long_that_nobody_hears_of_progress(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_MOST_BYTES_OF_A_RUN", 1)
    tasks = [Task(target.path, target.path.read_bytes(), target.settings) for target in plant(project, 16)]
    assert [len(run) for run in runner._runs(tasks, 2)] == [1] * 16


def test_what_was_read_of_a_project_too_large_to_be_kept_is_let_go(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "characters_kept", lambda: 1)
    monkeypatch.setattr(work, "_CHARACTERS_OF_GARBAGE", 1)
    models = []
    build = Model.build

    def watched(*given: Any) -> Model:
        models.append(weakref.ref(model := build(*given)))
        return model

    monkeypatch.setattr(Model, "build", watched)
    (project / "steps.py").write_text("def step(model, x):\n    return model(x)\n")
    for name in ("a", "b", "c"):
        (project / f"{name}.py").write_text(CALLS)
    run([Target(project / f"{name}.py", Settings()) for name in ("a", "b", "c")], Options(jobs=1))
    assert [model() for model in models[:2]] == [None, None]


def test_an_engine_that_crashes_costs_one_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(source: object, settings: object) -> None:
        raise AttributeError("gone")

    monkeypatch.setattr(work, "examine", crash)
    results = run(plant(project, 2), Options(jobs=1))
    assert [code for _, code, _ in everything(results)] == ["LINT04", "LINT04"]


def test_bytes_that_are_no_text_are_a_syntax_error(project: Path) -> None:
    (project / "a.py").write_bytes(b"import torch  # \xff torchlint: ignore\n")
    results = run([Target(project / "a.py", SETTINGS)], Options(jobs=1))
    assert [code for _, code, _ in everything(results)] == ["LINT01"]


def test_a_tree_is_fixed_in_memory(project: Path) -> None:
    plant(project, 2)
    (project / "clean.py").write_text("import torch\n")
    fixed = fix_tree([Path()])
    assert list(fixed) == [Path("m00.py"), Path("m01.py")]
    assert [finding.code for finding in fixed[Path("m00.py")].applied] == ["LINT03"]
    assert fixed[Path("m00.py")].source.text.startswith("import torch\nx = 1\n")
    assert (project / "m00.py").read_text().startswith(LEAK)


def test_a_tree_that_is_not_there(project: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fix_tree([Path("gone")])
