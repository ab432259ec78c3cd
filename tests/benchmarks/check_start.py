#!/usr/bin/env python3
"""Time the start of torchlint and a hook run on three small files, as ratios to `python -c pass` and to `ruff check`.

usage: check_start.py [--rounds N]

The commands take turns, so that a machine that drifts drifts for all; figures are the least user and system time of the
finished processes, which find their modules compiled. The hook is what .pre-commit-hooks.yaml calls, with its cache: of
files that mention torch and are clean, and of the same files with findings, which no cache saves.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TORCHLINT = (sys.executable, "-m", "torchlint")
CLEAN = "import torch\n\n\ndef double_{}(x):\n    return torch.relu(x) * 2\n"
FOUND = """import torch


def train_{}(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


def processor_seconds(command: tuple[str, ...], folder: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(folder: Path) -> dict[str, tuple[str, ...]]:
    clean, found = [f"clean{i}.py" for i in range(3)], [f"found{i}.py" for i in range(3)]
    for number in range(3):
        (folder / clean[number]).write_text(CLEAN.format(number))
        (folder / found[number]).write_text(FOUND.format(number))
    hook = (*TORCHLINT, "check", "--force-exclude")
    named = {
        "python -c pass": (sys.executable, "-c", "pass"),
        "torchlint --version": (*TORCHLINT, "--version"),
        "hook, three clean files": (*hook, *clean),
        "hook, three files with findings": (*hook, *found),
    }
    ruff = shutil.which("ruff")
    return named | ({"ruff check, the same files": (ruff, "check", "--no-cache", *clean, *found)} if ruff else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        named = commands(Path(folder))
        for command in named.values():  # compiles the modules and fills the cache
            processor_seconds(command, Path(folder))
        seconds: dict[str, list[float]] = {name: [] for name in named}
        for _ in range(rounds):
            for name, command in named.items():
                seconds[name].append(processor_seconds(command, Path(folder)))
    least = {name: min(measured) for name, measured in seconds.items()}
    ruff = next((value for name, value in least.items() if name.startswith("ruff")), None)
    for name, value in least.items():
        ratio = f"{value / least['python -c pass']:>7.1f} x python" + (f" {value / ruff:>7.1f} x ruff" if ruff else "")
        print(f"{name:34} {1000 * value:>6.0f} ms {ratio}")


if __name__ == "__main__":
    main()
