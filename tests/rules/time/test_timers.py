"""TIME01: objects that hold a clock, set by one method and read by another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

TIMER = """\
import time
import torch


class Timer:
    def __init__(self):
        self.begun, self.total = {}, 0.0

    def tic(self, name="all"):
        self.begun[name] = time.perf_counter()

    def toc(self, name="all"):
        seconds = time.perf_counter() - self.begun[name]
        return seconds

    def add(self, name="all"):
        self.total += time.perf_counter() - self.begun[name]
"""
PROGRAM = """\

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = torch.nn.Linear(4, 2).to(device)
net.eval()
x = torch.randn(3, 4, device=device)
timer = Timer()
"""
RUNS = {
    "printed": "timer.tic()\nout = net(x)\nprint(timer.toc())  # here\n",
    "added up by the timer": "timer.tic('net')\nout = net(x)\ntimer.add('net')  # here\nprint(timer.total)\n",
    "an entry of a function's own": (
        "def run(x):\n"
        "    timers = {'net': Timer(), 'all': Timer()}\n"
        "    timers['net'].tic()\n"
        "    out = net(x)\n"
        "    timers['net'].add()  # here\n"
        "    print(timers['net'].total)\n"
        "run(x)\n"
    ),
    "the timer of an object": (
        "class Predictor:\n"
        "    def __init__(self):\n"
        "        self.timers = {'net': Timer()}\n"
        "    def predict(self, x):\n"
        "        self.timers['net'].tic()\n"
        "        out = net(x)\n"
        "        seconds = self.timers['net'].toc()  # here\n"
        "        return out, seconds\n"
        "print(Predictor().predict(x)[1])\n"
    ),
}
SILENT = {
    "the work is waited for": "timer.tic()\nout = net(x).cpu()\nprint(timer.toc())\n",
    "the device is waited for": "timer.tic()\nout = net(x)\ntorch.cuda.synchronize()\nprint(timer.toc())\n",
    "the time is dropped": "timer.tic()\nout = net(x)\ntimer.toc()\n",
    "the time is kept and not asked for": (
        "def run(x):\n"
        "    timers = {'net': Timer(), 'all': Timer()}\n"
        "    timers['net'].tic()\n"
        "    out = net(x)\n"
        "    timers['net'].add()\n"
        "    print(timers['all'].total)\n"
        "run(x)\n"
    ),
    "another name": "timer.tic('a')\nout = net(x)\nprint(timer.toc('b'))\n",
    "another timer": "timer.tic()\nout = net(x)\nprint(Timer().toc())\n",
    "nothing is computed": "timer.tic()\nrows = list(range(9))\nprint(timer.toc())\n",
}


def lines(path: Path, files: dict[str, str]) -> list[int]:
    (path / "pyproject.toml").touch()
    for name, code in files.items():
        (path / name).write_text(code)
    found = lint(Source.read(path / "main.py"), Settings.selecting("TIME01"), strict=True, project=Project())
    return [finding.line for finding in found]


@pytest.mark.parametrize("apart", [False, True], ids=["in one file", "in two files"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_timer_that_waits_for_nothing_is_found(tmp_path: Path, run: str, *, apart: bool) -> None:
    code = ("import torch\nfrom timer import Timer\n" if apart else TIMER) + PROGRAM + run
    marked = [number for number, line in enumerate(code.splitlines(), 1) if "# here" in line]
    assert lines(tmp_path, {"main.py": code, "timer.py": TIMER}) == marked


@pytest.mark.parametrize("apart", [False, True], ids=["in one file", "in two files"])
@pytest.mark.parametrize("run", SILENT.values(), ids=SILENT)
def test_other_timers_are_silent(tmp_path: Path, run: str, *, apart: bool) -> None:
    code = ("import torch\nfrom timer import Timer\n" if apart else TIMER) + PROGRAM + run
    assert lines(tmp_path, {"main.py": code, "timer.py": TIMER}) == []


@pytest.mark.parametrize("apart", [False, True], ids=["in one file", "in two files"])
def test_a_timer_that_waits_by_itself_is_silent(tmp_path: Path, *, apart: bool) -> None:
    timer = TIMER.replace("        seconds =", "        torch.cuda.synchronize()\n        seconds =")
    code = ("import torch\nfrom timer import Timer\n" if apart else timer) + PROGRAM + RUNS["printed"]
    assert lines(tmp_path, {"main.py": code, "timer.py": timer}) == []


def test_the_fix_waits_before_both_calls() -> None:
    after = fixed(TIMER + PROGRAM + RUNS["printed"], "TIME01")
    wait = "if torch.cuda.is_available():\n    torch.cuda.synchronize()\n"
    assert after.endswith(f"{wait}timer.tic()\nout = net(x)\n{wait}print(timer.toc())  # here\n")
    exec(compile(after, "timed", "exec"), {"__name__": "timed"})
