#!/usr/bin/env python3
"""Time the steps of two programs without the probe and under each of its depths, in turn, and print the ratios.

usage: python -m tests.benchmarks.probe_overhead [--rounds N] [--steps N] [--output FILE]

"small" makes hundreds of operations on a few numbers per step, the worst case; "network" is a small convolutional
network. The programs time their own steps, in processor time on one thread; a figure is the median of a run. Depths:
"time" has clocks alone, as the timed runs of `verify`; "observe" counts and compares; a profile first times the lines
and then counts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torchlint.runtime_check.toolkit import device

from tests.runtime_check.programs import launch

CLOCK = """\
import json, time
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
seconds = []

def timed(step):
    try:
        for _ in range({steps}):
            begin = time.process_time()
            step()
            seconds.append(time.process_time() - begin)
    finally:
        print(json.dumps(seconds))

"""
PROGRAMS = {
    "small": """\
weight = torch.nn.Parameter(torch.randn(8, 8))
optimizer = torch.optim.SGD([weight], lr=0.001)
x = torch.randn(32, 8)

def step():
    rows = []
    for i in range(32):
        rows.append((x[i] @ weight).relu().sum())
    optimizer.zero_grad()
    torch.stack(rows).mean().backward()
    optimizer.step()

timed(step)
""",
    "network": """\
from torch import nn
layers = [nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Flatten()]
model = nn.Sequential(*layers, nn.Linear(32 * 28 * 28, 10))
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))

def step():
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

timed(step)
""",
}
WARMUP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=45)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    rows = [row for name in PROGRAMS for row in measured(name, given.rounds, given.steps)]
    print(f"{'program':10}{'depth':20}{'per step':>12}{'ratio to the program alone':>30}")
    for row in rows:
        low, high = min(row["ratios"]), max(row["ratios"])
        ratio = f"{median(row['ratios']):.2f} (from {low:.2f} to {high:.2f})"
        print(f"{row['program']:10}{row['depth']:20}{1e3 * median(row['seconds']):>9.2f} ms{ratio:>30}")
    if given.output is not None:
        given.output.write_text(json.dumps({**about(), "rows": rows}, indent=1) + "\n")


def measured(name: str, rounds: int, steps: int) -> Iterator[dict[str, Any]]:
    """Seconds per step in each round, and their ratio to those of the program alone in the same round."""
    code = CLOCK.format(steps=steps) + PROGRAMS[name]
    found = [_round(code, steps) for _ in range(rounds)]
    for depth in found[0]:
        seconds = [times[depth] for times in found]
        ratios = [round(times[depth] / times["alone"], 4) for times in found]
        yield {"program": name, "depth": depth, "seconds": seconds, "ratios": ratios}


def _round(code: str, steps: int) -> dict[str, float]:
    half = (steps - WARMUP) // 2
    profile = _seconds(code, steps, mode="profile", timed=half)
    return {
        "alone": median(_alone(code)[WARMUP:]),
        "time": median(_seconds(code, steps, mode="time")[WARMUP:]),
        "observe": median(_seconds(code, steps, mode="observe")[WARMUP:]),
        "profile, timed": median(profile[WARMUP : WARMUP + half]),
        "profile, counted": median(profile[WARMUP + half :]),
    }


def _alone(code: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(value) for value in json.loads(done.stdout)]


def _seconds(code: str, steps: int, **settings: Any) -> list[float]:
    """The program ends by itself, one step before the probe would stop it."""
    with tempfile.TemporaryDirectory() as name:
        outcome = launch(Path(name, "project"), code, steps=steps + 1, warmup=WARMUP, **settings)
    assert outcome.run is not None, outcome.log
    return [float(value) for value in json.loads(outcome.run.printed)]


def about() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "command": f"python -m tests.benchmarks.probe_overhead {' '.join(sys.argv[1:])}".strip(),
        "commit": commit,
        "date": datetime.date.today().isoformat(),
        "device": f"{device.describe(torch.device('cpu'))}, one thread",
        "clock": "processor time of the process",
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
