"""TIME01: timers that a `with` statement enters, or a decorator puts around a function."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

OBJECT = """\
import time
import torch

class Timer:
    def __enter__(self):
        self.start = time.perf_counter()
        return self

    def __exit__(self, *error):
        {wait}
        {end}
"""
GENERATOR = """\
import contextlib, time
import torch

@contextlib.contextmanager
def Timer():
    start = time.perf_counter()
    yield
    {wait}
    {end}
"""
PROGRAM = """\

device = torch.device("{device}")
net = torch.nn.Linear(4, 2).to(device).eval()
x = torch.randn(3, 4, device=device)
with torch.no_grad():
    with Timer(){name}:
        y = net(x)
        {last}
{told}
"""
TOLD = {"name": " as timer", "told": "print(timer.seconds)"}
KEPT, PRINTED = "self.seconds = time.perf_counter() - self.start", "print(time.perf_counter() - self.start)"
SINCE = "print(time.perf_counter() - start)"


def found(timer: str, **parts: str) -> int:
    parts = {"wait": "pass", "device": "cuda", "last": "pass", "name": "", "told": "", **parts}
    return len(findings(timer.format(**parts) + PROGRAM.format(**parts), "TIME01"))


@pytest.mark.parametrize(
    ("timer", "parts"),
    [
        pytest.param(OBJECT, {"end": KEPT, **TOLD}, id="an object that keeps the time"),
        pytest.param(OBJECT, {"end": PRINTED}, id="an object that prints it"),
        pytest.param(GENERATOR, {"end": SINCE}, id="a generator"),
    ],
)
def test_a_timer_that_waits_for_nothing_leaves_out_the_work_of_its_block(timer: str, parts: dict[str, str]) -> None:
    assert found(timer, **parts) == 1
    assert found(timer, wait="torch.cuda.synchronize()", **parts) == 0
    assert found(timer, last="y.cpu()", **parts) == 0
    assert found(timer, device="cpu", **parts) == 0


@pytest.mark.parametrize(
    ("timer", "parts"),
    [
        pytest.param(OBJECT, {"end": KEPT}, id="a time that nobody asks for"),
        pytest.param(OBJECT, {"end": "pass"}, id="no second reading"),
        pytest.param(GENERATOR, {"end": "print(time.strftime('%H:%M'))"}, id="the time of the day"),
        pytest.param(GENERATOR, {"end": "assert time.perf_counter() - start < 9"}, id="a limit"),
    ],
)
def test_what_tells_no_time_is_no_timer(timer: str, parts: dict[str, str]) -> None:
    assert found(timer, **parts) == 0


@pytest.mark.parametrize("timer", [OBJECT.format(wait="pass", end=PRINTED), GENERATOR.format(wait="pass", end=SINCE)])
def test_a_timer_of_another_file(tmp_path: Path, timer: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "timers.py").write_text(timer)
    program = PROGRAM.format(device="cuda", last="pass", name="", told="")
    (tmp_path / "main.py").write_text(f"import torch\nfrom timers import Timer\n{program}")
    report = lint(Source.read(tmp_path / "main.py"), Settings.selecting("TIME01"), strict=True, project=Project())
    assert [finding.fix for finding in report] == [None]  # others may use the timer


DECORATOR = """
import functools, time
import torch

def timed(function):
    @functools.wraps(function)
    def run(*args):
        {before}
        result = function(*args)
        {wait}
        {after}
        return result
    return run
"""
DECORATED = """
import torch
from timers import timed

net = torch.nn.Linear(4, 2).cuda().eval()

@timed
@torch.no_grad()
def encode(x: torch.Tensor):
    return net(x){host}

print(encode(torch.randn(3, 4, device="cuda")).shape)
"""


@pytest.mark.parametrize(
    ("before", "wait", "after", "host", "count"),
    [
        ("start = time.time()", "pass", "print(function.__name__, time.time() - start)", "", 1),
        ("start = time.time()", "end = time.time()", "print(end - start)", "", 1),
        ("start = time.time()", "torch.cuda.synchronize()", "print(time.time() - start)", "", 0),
        ("start = time.time()", "pass", "print(time.time() - start)", ".cpu()", 0),
        ("start = time.time()", "pass", "print(start)", "", 0),
        ("print(time.time())", "start = time.time()", "print(time.time() - start)", "", 0),
    ],
)
def test_a_decorator_of_another_file_that_times_each_call(
    tmp_path: Path, before: str, wait: str, after: str, host: str, count: int
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "timers.py").write_text(DECORATOR.format(before=before, wait=wait, after=after))
    (tmp_path / "main.py").write_text(DECORATED.format(host=host))
    report = lint(Source.read(tmp_path / "main.py"), Settings.selecting("TIME01"), strict=True, project=Project())
    assert len(report) == count


def test_a_decorator_of_this_file_is_found_by_its_readings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    made = DECORATOR.format(before="start = time.time()", wait="pass", after="print(time.time() - start)")
    (tmp_path / "main.py").write_text(made + DECORATED.format(host="").replace("from timers import timed", ""))
    report = lint(Source.read(tmp_path / "main.py"), Settings.selecting("TIME01"), strict=True, project=Project())
    assert len(report) == 1
