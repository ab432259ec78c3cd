"""The count of what is said about other people's packages must be right, and a file past the gate must be analysed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SILENCE = Path(__file__).with_name("silence.py")
LEAK = """\
import torch

def train(net, loader, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


def listen(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    package = tmp_path / "site" / "package"
    package.mkdir(parents=True, exist_ok=True)
    (package / "train.py").write_text(LEAK)
    (package / "plain.py").write_text("x = 1\n")
    record = tmp_path / "site" / "package-1.2.dist-info"
    record.mkdir(exist_ok=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: package\nVersion: 1.2\n")
    (record / "RECORD").write_text("package/train.py,,\n")
    command = [sys.executable, str(SILENCE), "--site", str(tmp_path / "site"), *options, "package"]
    root = str(SILENCE.parents[2])
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": root}, check=False
    )


def test_a_row_counts_files_lines_and_findings(tmp_path: Path) -> None:
    done = listen(tmp_path, "--findings", str(tmp_path / "findings"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2].startswith("| package | 1.2 | 2 | 12 | 1 | MEM02 1 |")
    (finding,) = map(json.loads, (tmp_path / "findings").read_text().splitlines())
    assert (finding["code"], finding["line"], finding["text"]) == ("MEM02", 10, "total += loss")


def test_past_the_gate_every_file_is_analysed(tmp_path: Path) -> None:
    assert "| 2 | 12 | 2 | MEM02 1 |" in listen(tmp_path, "--past-the-gate").stdout


def test_slow_files_are_named(tmp_path: Path) -> None:
    assert "train.py" in listen(tmp_path, "--slow", "0").stdout


def test_a_package_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = listen(tmp_path, "no_such_package")
    assert done.returncode == 1
    assert "no such package" in done.stderr
