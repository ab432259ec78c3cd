"""SYNC07: the times that a sampler goes through, of which Python asks the truth."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import HEAD
from tests.support import findings

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
