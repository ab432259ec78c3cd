"""The probe's CUDA branch, run on a torch.cuda that the program itself makes up.

It shows that the branch runs and reads what it should read; whether the figures of a device are right, only
test_cuda.py can show.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.runtime_check.programs import launch

pytestmark = pytest.mark.usefixtures("forked")

PROGRAM = """
    import contextlib, time, warnings
    import torch
    import torch._dynamo  # which an optimizer imports, and which looks at torch.cuda in torch 2.4

    class Event:
        def __init__(self, enable_timing): pass
        def record(self): self.at = time.perf_counter()
        def elapsed_time(self, other): return 1e3 * (other.at - self.at)

    allocated = iter(range(1000, 100000, 512))
    mode = []
    cuda = torch.cuda
    cuda.is_initialized = lambda: True
    cuda.Event = Event
    cuda.synchronize = lambda: None
    cuda.device_count = lambda: 1
    cuda.memory_allocated = lambda device: next(allocated)
    cuda.max_memory_allocated = lambda device: 5000
    cuda.reset_peak_memory_stats = lambda device: None
    cuda.get_device_name = lambda: "pretended"
    cuda.get_rng_state_all = lambda: []
    cuda.set_sync_debug_mode = mode.append

    def read(loss):
        if mode and mode[-1] == "warn":
            warnings.warn("called a synchronizing CUDA operation (Triggered internally)")
        return loss.item()

    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    warnings.simplefilter("ignore")
    while True:
        loss = weight.square().sum()
        loss.backward()
        optimizer.step()
        read(loss)
"""


def run(tmp_path: Path, mode: Literal["time", "observe"]):  # type: ignore[no-untyped-def]
    (tmp_path / "project").mkdir()
    boundary = "optimizer" if mode == "time" else "auto"
    outcome = launch(tmp_path / "project", PROGRAM, mode=mode, boundary=boundary, steps=6, warmup=2)
    assert outcome.run is not None, outcome.log
    assert (outcome.run.device, outcome.run.device_name) == ("cuda", "pretended")
    return outcome.run


def test_events_time_every_step_after_the_warm_up(tmp_path: Path) -> None:
    found = run(tmp_path, "time")
    assert (found.first_event, len(found.device_seconds)) == (1, 5)
    wall = sum(step["wall"] for step in found.steps[2:]) / 4
    assert found.seconds_per_step("device", 2) == pytest.approx(wall, rel=0.5)


def test_warnings_and_the_allocator_are_read_per_step(tmp_path: Path) -> None:
    found = run(tmp_path, "observe")
    line = next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if "warnings.warn" in text)
    assert found.sync_lines == {f"train.py:{line}": 4}
    assert found.mean("syncs", 2) == 1.0
    assert found.growth("device_bytes", 2) == pytest.approx(512)
    assert found.mean("device_peak_bytes", 2) == 5000
