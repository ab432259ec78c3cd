"""What came back from one run of the program under the probe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, linear_regression
from typing import Any

BOUNDARIES = ("program", "loader", "optimizer")


@dataclass(frozen=True, slots=True)
class Parameter:
    shape: tuple[int, ...]
    dtype: str
    bits: str
    norm: float
    projection: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the program as it was called: `parent` is the number of the site that called it. Site 0 is what runs
    outside of the program's files."""

    parent: int
    path: str
    line: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """Figures are per step; `random` maps each generator to a digest of its state in the end, `written` each file that
    the program wrote to one of its content. `gradients` has the norms at each step of an optimizer, in the order of its
    parameters; `lines` are those of the program that ran. `calls` of the function whose arguments were to be recorded;
    `unrecorded` counts those that could not be, by reason. `sites` were timed, `backward_seconds` beside them, and
    `costs` maps what was counted to its sum by number of the site, over `counted_steps`."""

    boundary: str
    why: str
    steps: tuple[Mapping[str, float], ...]
    device: str
    device_name: str | None
    driver: str | None
    torch: str
    cuda: str | None
    threads: int
    helpers: int = 0
    losses: tuple[tuple[int, float], ...] = ()
    gradients: tuple[tuple[int, tuple[float | None, ...]], ...] = ()
    parameters: tuple[Parameter, ...] = ()
    random: Mapping[str, str] = field(default_factory=dict)
    read_lines: Mapping[str, int] = field(default_factory=dict)
    sync_lines: Mapping[str, int] = field(default_factory=dict)
    device_seconds: tuple[float, ...] = ()
    first_event: int = 0
    drain_seconds: float = 0.0
    loaded: tuple[str, ...] = ()
    escaped: tuple[str, ...] = ()
    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    printed: str = ""
    calls: int = 0
    unrecorded: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    sites: tuple[Site, ...] = ()
    backward_seconds: float = 0.0
    costs: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    counted_steps: int = 0

    def mean(self, figure: str, warmup: int) -> float | None:
        values = [value for _, value in self._after(figure, warmup)]
        return fmean(values) if values else None

    def growth(self, figure: str, warmup: int) -> float | None:
        """Slope per step, by least squares over the steps that have the figure."""
        points = self._after(figure, warmup)
        return linear_regression(*zip(*points, strict=True)).slope if len(points) > 1 else None

    def seconds_per_step(self, metric: str, warmup: int) -> float | None:
        """metric: "device" (between events on the stream), "wall" or "cpu" (of the process)."""
        times = self.step_times(metric, warmup)
        return fmean(times) if times else None

    def step_times(self, metric: str, warmup: int) -> list[float]:
        if metric == "device":
            return list(self.device_seconds[max(0, warmup - self.first_event) :])
        return [value for _, value in self._after(metric, warmup)]

    def _after(self, figure: str, warmup: int) -> list[tuple[int, float]]:
        return [(n, step[figure]) for n, step in enumerate(self.steps, 1) if n > warmup and figure in step]


def read_results(folder: Path) -> Run | None:
    """A command may start several processes that import torch; the one that trained most is meant."""
    raws = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    if not raws:
        return None
    return _run(max(raws, key=lambda raw: (BOUNDARIES.index(raw["boundary"]), len(raw["steps"]))))


def _run(raw: dict[str, Any]) -> Run:
    parameters = tuple(Parameter(tuple(item.pop("shape")), **item) for item in raw.pop("parameters", []))
    return Run(
        steps=tuple(raw.pop("steps")),
        losses=tuple((step, value) for step, value in raw.pop("losses", [])),
        gradients=tuple((step, tuple(norms)) for step, norms in raw.pop("gradients", [])),
        device_seconds=tuple(raw.pop("device_seconds", [])),
        lines={file: frozenset(numbers) for file, numbers in raw.pop("lines", {}).items()},
        parameters=parameters,
        sites=tuple(Site(**site) for site in raw.pop("sites", [])),
        costs={name: {int(site): value for site, value in sums.items()} for name, sums in raw.pop("costs", {}).items()},
        loaded=tuple(raw.pop("loaded")),
        escaped=tuple(raw.pop("escaped")),
        **raw,
    )
