"""What only a CUDA device can show."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from torchlint.runtime_check import Options, Overall, verify_trees
from torchlint.runtime_check.equivalence import Sameness

from tests.runtime_check.programs import launch


def _has_cuda() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not _has_cuda(), reason="needs a CUDA device")]

PROGRAM = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(256, 512, device="cuda")
    losses, running = [], 0.0
    while True:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        running += loss.item()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_events_and_the_clock_on_the_wall_agree(root: Path) -> None:
    """The program reads its loss in every step, so host and device cannot drift apart."""
    run = launch(root, PROGRAM, mode="time", boundary="optimizer", steps=60, warmup=20).run
    assert run is not None
    assert run.device == "cuda"
    wall = run.seconds_per_step("wall", 20)
    assert run.seconds_per_step("device", 20) == pytest.approx(wall, rel=0.1)


def test_a_read_is_one_synchronisation_on_its_line(root: Path) -> None:
    run = launch(root, PROGRAM, steps=12, warmup=3).run
    assert run is not None
    line = next(number for number, text in enumerate(dedent(PROGRAM).splitlines(), 1) if "loss.item()" in text)
    assert run.sync_lines == {f"train.py:{line}": 9}
    assert run.mean("syncs", 3) == 1.0


def test_the_allocator_sees_what_is_kept(root: Path) -> None:
    run = launch(root, PROGRAM, steps=12, warmup=3).run
    assert run is not None
    assert run.growth("device_bytes", 3) == pytest.approx(512, abs=1)
    peak = run.mean("device_peak_bytes", 3)
    assert peak is not None
    parameters = 4 * (512 * 512 + 512 + 512 + 1)
    assert 2 * parameters < peak < 64 << 20


def test_verify_accepts_the_fixed_program(tmp_path: Path) -> None:
    text = dedent(PROGRAM)
    changed = text.replace("append(loss)", "append(loss.detach())").replace("loss.item()", "loss.detach()")
    (tmp_path / "train.py").write_text(text)
    options = Options(steps=200, warmup=50, blocks=5, timeout=120)
    verdict = verify_trees(tmp_path, {Path("train.py"): changed}, [sys.executable, "train.py"], options)
    assert verdict.equivalence is not None
    assert verdict.equivalence.verdict is Sameness.IDENTICAL
    assert verdict.overall in (Overall.ACCEPT, Overall.REVIEW)
    assert verdict.before is not None
    assert verdict.after is not None
    assert (verdict.before.syncs, verdict.after.syncs) == (1.0, 0.0)
    assert verdict.after.graph_nodes_kept_per_step == 0.0
    assert verdict.environment is not None
    assert verdict.environment.on_gpu
