#!/usr/bin/env python3
"""Time loops over rows before and after the vectoriser, in turn, and write what the rewrite gains.

usage: python -m tests.evidence.loop_speed [--device cuda] [--loops N] [--seed N] [--rounds N] [--output FILE]

The loops are those of examples/mimo_channel.py and generated ones that the vectoriser rewrites. Every round times the
original and then the rewrite, so that a machine that drifts drifts for both; the ratio is that of the two times of one
round, and above 1 the rewrite is faster. On a CPU the times are of the process, in one thread; on a GPU they are of
the clock, until the device has finished.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tests.fixers.agreement import PROGRESS, Case
from tests.fixers.generated import RULES, loops
from tests.fixers.loop_parts import COMPLEX, INTEGERS
from tests.fixers.loops import Generated
from tests.support import fixed

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = Path(__file__).with_name("loop_speed.json")
ROWS = (16, 128, 1024)
LENGTHS = {"m": 4, "p": 8, "q": 6}
ENOUGH = 0.002
"""Seconds that one timing takes at least; shorter work is repeated."""

Work = Callable[[], Any]


@dataclass(frozen=True)
class Subject:
    """A loop and its rewrite, each as work on the same inputs of so many rows."""

    name: str
    rows: int
    before: Work
    after: Work
    mapped: bool


def subjects(count: int, seed: int, device: torch.device) -> Iterator[Subject]:
    yield from _of_example(device)
    yield from _generated(count, seed, device)


def _of_example(device: torch.device) -> Iterator[Subject]:
    code = (ROOT / "examples" / "mimo_channel.py").read_text(encoding="utf-8")
    new = fixed(code, *RULES)
    before, after = _module(code), _module(new)
    for rows in ROWS:
        torch.manual_seed(0)
        h, x, y = (
            torch.randn(rows, *shape, dtype=torch.complex64, device=device)
            for shape in ((before.RX, before.TX), (before.TX, 16), (before.RX, 16))
        )
        for (name, one), other in zip(_works(before, h, x, y).items(), _works(after, h, x, y).values()):
            yield Subject(f"mimo_channel.py: {name}", rows, one, other, "vmap" in new)


def _works(module: ModuleType, h: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict[str, Work]:
    """The loops of the example, as the functions that they are in."""
    torch.manual_seed(0)
    receiver = module.Receiver().to(h.device)
    return {
        "propagate": lambda: module.propagate(h, x, 0.1),
        "quantise": lambda: module.quantise(y, 0.5, 3),
        "signal_power": lambda: module.signal_power(y),
        "equalise": lambda: receiver.equalise(h, y),
        "equalise and its gradient": lambda: receiver.equalise(h, y).abs().sum().backward(),
    }


def _module(code: str) -> ModuleType:
    module = ModuleType("subject")
    vars(module).update(SIZES={}, tqdm=PROGRESS)
    exec(compile(code.replace("import tqdm\n", ""), "<subject>", "exec"), vars(module))
    return module


def _generated(count: int, seed: int, device: torch.device) -> Iterator[Subject]:
    """Of so many loops, those that are rewritten."""
    for number, loop in enumerate(loops(count, seed)):
        new = fixed(loop.code, *RULES)
        if new == loop.code:
            continue
        name = f"generated {number}: {loop.sink}, {loop.wrapper}, {loop.kind}"
        for rows in ROWS:
            inputs = [one.to(device) for one in _case(loop, rows).inputs(loop.shapes, loop.indices)]
            yield Subject(name, rows, *(_call(code, rows, inputs, device) for code in (loop.code, new)), "vmap" in new)


def _case(loop: Generated, rows: int) -> Case:
    dtype = {COMPLEX: torch.complex64, INTEGERS: torch.int64}.get(loop.kind, torch.float32)
    return Case({**LENGTHS, "n": rows}, dtype, graph=False)


def _call(code: str, rows: int, inputs: list[torch.Tensor], device: torch.device) -> Work:
    module = _module(code)
    module.SIZES.update(LENGTHS, n=rows)

    function: Callable[..., Any] = module.f
    if device.type == "cpu":
        return lambda: function(*inputs)

    def work() -> None:
        with device:  # of what the loop makes itself; costs every operation some time, before and after
            function(*inputs)

    return work


def ratios(subject: Subject, rounds: int, device: torch.device) -> dict[str, Any] | None:
    """The times and their ratio; None of a loop that does not run on inputs of this size or dtype."""
    try:
        repeats = [_repeats(work, device) for work in (subject.before, subject.after)]
    except (RuntimeError, IndexError):
        return None
    before, after = [], []
    for _ in range(rounds):
        before.append(_seconds(subject.before, repeats[0], device))
        after.append(_seconds(subject.after, repeats[1], device))
    found = [one / other for one, other in zip(before, after)]
    return {
        "loop": subject.name,
        "rows": subject.rows,
        "mapped": subject.mapped,
        "before": _digits(statistics.median(before)),
        "after": _digits(statistics.median(after)),
        "ratio": _digits(statistics.median(found)),
        "range": [_digits(min(found)), _digits(max(found))],
    }


def _repeats(work: Work, device: torch.device) -> int:
    _seconds(work, 1, device)
    once = _seconds(work, 1, device)
    return max(1, round(ENOUGH / max(once, 1e-9)))


def _seconds(work: Work, repeats: int, device: torch.device) -> float:
    """Of one repetition."""
    on_gpu = device.type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time
    start = clock()
    for _ in range(repeats):
        work()
    if on_gpu:
        torch.cuda.synchronize(device)
    return max(clock() - start, 1e-9) / repeats


def _digits(value: float) -> float:
    return float(f"{value:.3g}")


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each group of loops and each number of rows: how many, and how their ratios are spread."""
    found = []
    for group, rows in sorted({(_group(one), one["rows"]) for one in records}):
        spread = sorted(one["ratio"] for one in records if (_group(one), one["rows"]) == (group, rows))
        median = _digits(statistics.median(spread))
        slower = sum(ratio < 1 for ratio in spread)
        found.append(
            {"loops": group, "rows": rows, "count": len(spread), "median": median, "range": [spread[0], spread[-1]]}
            | {"slower": slower}
        )
    return found


def _group(record: dict[str, Any]) -> str:
    if not record["loop"].startswith("generated"):
        return "examples/mimo_channel.py"
    return "generated, mapped" if record["mapped"] else "generated, batched"


def _laid_out(evidence: dict[str, Any]) -> str:
    """JSON with a line for each record."""
    fields = []
    for name, value in evidence.items():
        lines = ",\n  ".join(map(json.dumps, value)) if isinstance(value, list) else ""
        fields.append(f' "{name}": ' + (f"[\n  {lines}\n ]" if lines else json.dumps(value)))
    return "{\n" + ",\n".join(fields) + "\n}\n"


def circumstances(device: torch.device) -> dict[str, str]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {
        "command": " ".join(["python -m tests.evidence.loop_speed", *sys.argv[1:]]),
        "commit": commit.stdout.strip(),
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else f"{_processor()}, one thread",
        "clock": "time until the device has finished" if device.type == "cuda" else "time of the process",
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _processor() -> str:
    found = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return found[0].partition(": ")[2] if found else platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--loops", type=int, default=60, help="generated loops; those not rewritten count for nothing")
    parser.add_argument("--seed", type=int, default=0, help="of the first generated loop")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = (
        ratios(one, options.rounds, options.device) for one in subjects(options.loops, options.seed, options.device)
    )
    records = [one for one in found if one is not None]
    table = summary(records)
    for row in table:
        print(
            "{loops:26} {rows:>5} rows  {count:>3} loops  median {median:>7}  range {range}  slower {slower}".format(
                **row
            )
        )
    evidence = {**circumstances(options.device), "rounds": options.rounds, "summary": table, "loops": records}
    options.output.write_text(_laid_out(evidence), encoding="utf-8")


if __name__ == "__main__":
    main()
