"""SYNC07: the times that a sampler goes through, of which Python asks the truth."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.sync.programs import HEAD
from tests.support import findings, fixed

SAMPLER = (
    HEAD
    + """
@torch.no_grad()
def sample(model, x):
    model, x = model.to(device), x.to(device)
    times = torch.linspace(1, 0, 50, device={place})
    for t in {times}:
        noise = 0 if {asked} else torch.randn_like(x)
        x = model(x) + noise
    return x
"""
)


@pytest.mark.parametrize(
    ("place", "times", "asked", "count"),
    [
        ("device", "times", "t == times[-1]", 1),
        ("device", "times[1:]", "t < 0.1", 1),
        ("device", "times", "t is None", 0),
        ("device", "times.tolist()", "t == 0", 0),
        ("'cpu'", "times", "t == times[-1]", 0),
    ],
)
def test_a_schedule_on_the_device_need_not_be_asked_in_every_step(
    place: str, times: str, asked: str, count: int
) -> None:
    found = findings(SAMPLER.format(place=place, times=times, asked=asked), "SYNC05", "SYNC07")
    assert [finding.code for finding in found] == ["SYNC07"] * count


COUNTED = (
    HEAD
    + """
@torch.no_grad()
def sample(model, x, scheduler, n):
    model, x = model.to(device), x.to(device)
    times = {times}
    for i in range(n):
        t, after = times[i].item(), times[i + 1].item()
        x = x + (after - t) * model(x, t)
        {body}
    return x
"""
)


@pytest.mark.parametrize(
    ("times", "body", "count"),
    [
        ("torch.linspace(1, 0, n + 1, device=device)", "pass", 1),
        ("torch.linspace(1, 0, n + 1).to(device)", "pass", 1),
        ("torch.linspace(1, 0, n + 1)", "pass", 0),
        ("torch.linspace(1, 0, n + 1, device=device).tolist()", "pass", 0),
        ("torch.linspace(1, 0, n + 1, device=device)", "times = times * x.mean()", 0),
        ("torch.linspace(1, 0, n + 1, device=device)", "times[i + 1] += x.mean()", 0),
        ("scheduler.times", "pass", 0),
        ("torch.rand(n + 1, 3, device=device)", "pass", 0),  # rows
    ],
)
def test_the_times_of_a_sampler_are_read_once_by_who_wants_numbers(times: str, body: str, count: int) -> None:
    found = findings(COUNTED.format(times=times, body=body), "SYNC01", "SYNC02", "SYNC07")
    assert [finding.code for finding in found] == ["SYNC07"] * count


def test_both_times_of_a_step_come_from_the_list() -> None:
    torch = pytest.importorskip("torch")
    code = COUNTED.format(times="torch.linspace(1, 0, n + 1, device=device)", body="pass")
    code = code[code.index("@torch") :]
    changed = fixed("import torch\ndevice = torch.device('cuda')\n\n\n" + code, "SYNC07", unsafe=True)
    assert "times_list[i], times_list[i + 1]" in changed
    results = []
    for text in (code, changed[changed.index("@torch") :]):
        names = {"torch": torch, "device": torch.device("cpu")}
        exec(text, names)
        layer = torch.nn.Linear(3, 3)
        torch.nn.init.constant_(layer.weight, 0.25)
        torch.nn.init.constant_(layer.bias, 0.5)
        results.append(names["sample"](_Timed(layer), torch.ones(2, 3), None, 5))
    assert torch.equal(*results)


class _Timed:
    """A network that is told the time."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def to(self, device: Any) -> _Timed:
        return self

    def __call__(self, x: Any, t: float) -> Any:
        return self.layer(x) * t
