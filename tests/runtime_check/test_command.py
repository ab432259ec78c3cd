"""`torchlint verify` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_check import call

LEAKING = """\
import sys
import time

import torch
from torch import nn


def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    print(sum(loss.item() for loss in losses))


"""


RUN = """\
def evaluate(model, loader):
    model.eval()
    return [model(x).argmax(dim=1) for x, _ in loader]


model = nn.Linear(2, 1)
batches = [(torch.ones(4, 2), torch.ones(4, 1))] * 8
train(model, batches, torch.optim.SGD(model.parameters(), lr=0.1), nn.functional.mse_loss)
"""
FEW = ("--steps", "6", "--warmup", "1", "--blocks", "0", "--quiet")


def verify(folder: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "torchlint", "verify", *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("forked")
def test_a_failing_command_is_an_error_in_json(project: Path) -> None:
    (project / "train.py").write_text(LEAKING + "sys.exit('no data')\n")
    done = call("verify", "--output-format", "json", "--", sys.executable, "train.py")
    assert done.exit_code == 2, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["overall"]) == ("torchlint.runtime_check/1", "error")
    assert found["target"]["fixes"] == {"train.py": {"MEM01": 1}}
    assert "no data" in found["log"]
    assert "--root" not in done.stderr


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("command", ["verify", "profile"])
def test_a_command_that_misses_files_above_its_folder_is_told_how_to_take_them_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "size.txt").write_text("2")
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "train.py").write_text(LEAKING + "open('../size.txt')\n")
    monkeypatch.chdir(folder)
    done = call(command, "--", sys.executable, "train.py")
    assert done.exit_code == 2
    assert "holds scripts and nothing above it; `--root ..` takes all of the project along" in done.stderr


def test_apply_writes_the_fixes_that_proved_harmless_and_no_others(tmp_path: Path) -> None:
    """What `evaluate` would gain stays out: the command does not run it."""
    text = LEAKING + RUN
    (tmp_path / "train.py").write_text(text)
    process = verify(
        tmp_path,
        "--apply",
        "--select",
        "MEM01,MEM05",
        "--output-format",
        "html",
        *FEW,
        "--",
        sys.executable,
        "train.py",
    )
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, output + errors
    assert "MEM05 train.py" in output
    assert "<ins>+        losses.append(loss.detach())</ins>" in output
    expected = text.replace("losses.append(loss)", "losses.append(loss.detach())")
    assert (tmp_path / "train.py").read_text() == expected


def test_nothing_to_fix_is_nothing_to_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(9)\n")
    process = verify(tmp_path, "--", sys.executable, "train.py")
    said = process.communicate(timeout=60)[1].splitlines()
    assert said == ["torchlint: looking for fixes in the files of the project", "Nothing to verify: no fix applies."]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing argument"),
        (("--select", "MEM99", "--", "python", "train.py"), "MEM99"),
        (("--", "no-such-program"), "no-such-program is not a program"),
        (("--root", "elsewhere", "--", "python"), "elsewhere"),
    ],
)
def test_wrong_usage(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "train.py").write_text(LEAKING)
    process = verify(tmp_path, *words)
    assert message in process.communicate(timeout=60)[1]
    assert process.returncode == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_program_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    project, temporary = tmp_path / "project", tmp_path / "temporary"
    project.mkdir()
    temporary.mkdir()
    started = f"import time\nopen({str(tmp_path / 'started')!r}, 'w')\ntime.sleep(100)\n"
    (project / "train.py").write_text(started + LEAKING)
    process = verify(project, "--", sys.executable, "train.py", TMPDIR=str(temporary))
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(temporary.iterdir())
    process.send_signal(number)
    assert process.wait(timeout=30) == 130
    assert list(temporary.iterdir()) == []
    assert list(project.iterdir()) == [project / "train.py"]
