#!/usr/bin/env python3
"""Time `torchlint check` against another linter on the same files, in turn, and print lines per second and the ratio.

usage: check_speed.py FOLDER --peer "COMMAND" [--rounds N]

Both commands get FOLDER as their last argument; torchlint runs without its cache and in one process. The rounds
alternate, so that a machine that drifts drifts for both. Figures are user and system time of the finished processes,
which find their modules compiled, as after an installation.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

TORCHLINT = [sys.executable, "-m", "torchlint", "check", "--isolated", "--no-cache", "--jobs", "1", "--quiet"]


def lines_of(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))


def processor_seconds(command: list[str]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def report(name: str, seconds: list[float], lines: int) -> None:
    middle = statistics.median(seconds)
    print(f"{name:10} {lines / middle:>9,.0f} lines/s   {middle:.2f} s (from {min(seconds):.2f} to {max(seconds):.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    lines = lines_of(arguments.folder)
    ours: list[float] = []
    theirs: list[float] = []
    processor_seconds([*TORCHLINT, str(Path(__file__).parent)])
    for _ in range(arguments.rounds):
        ours.append(processor_seconds([*TORCHLINT, str(arguments.folder)]))
        theirs.append(processor_seconds([*shlex.split(arguments.peer), str(arguments.folder)]))
    print(f"{arguments.folder}: {lines:,} lines of Python, {arguments.rounds} rounds")
    report("torchlint", ours, lines)
    report("peer", theirs, lines)
    ratios = [theirs_once / ours_once for ours_once, theirs_once in zip(ours, theirs)]
    print(f"ratio      {statistics.median(ratios):.1f} (from {min(ratios):.1f} to {max(ratios):.1f})")


if __name__ == "__main__":
    main()
