"""Runs made up from fixed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchlint.runtime_check.run import Parameter, Run


def run(losses: Sequence[float] = (), parameters: Sequence[Parameter] = (), printed: str = "", **given: Any) -> Run:
    steps: tuple[Mapping[str, float], ...] = given.pop("steps", ({},) * max(1, len(losses)))
    figures = {
        "boundary": "optimizer",
        "why": "stop",
        "device": "cpu",
        "device_name": None,
        "driver": None,
        "torch": "2.13.0",
        "cuda": None,
        "threads": 1,
        "random": {"torch": "start"},
    }
    numbered = tuple(enumerate(losses, 1))
    return Run(steps=steps, losses=numbered, parameters=tuple(parameters), printed=printed, **{**figures, **given})


def parameter(norm: float = 1.0, projection: float = 0.5, bits: str = "", dtype: str = "float32") -> Parameter:
    return Parameter((4, 4), dtype, bits or f"{norm!r}/{projection!r}", norm, projection)
