"""Time of each step: host clocks, and on CUDA events, which cost the program no synchronisation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .turns import Turns


class Clock:
    """`wall` and `cpu` (of this process) in seconds per step; `data` is the part of `wall` spent in the loader.

    On CUDA the time between two events on the stream is the step's time as the device sees it, however far the host
    has run ahead. Synchronising at each step instead would hide what the removal of a synchronisation gains.
    Waiting for one's turn belongs to no step.
    """

    def __init__(self, turns: Turns | None = None) -> None:
        self.turns = turns
        self.events: list[Any] = []
        self.waited = 0.0
        self._restart()

    def _restart(self) -> None:
        self.cpu = time.process_time()
        self.wall = time.perf_counter()

    def step(self, number: int) -> dict[str, float]:
        if torch.cuda.is_initialized():
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.events.append((number, event))
        figures = {
            "wall": time.perf_counter() - self.wall,
            "cpu": time.process_time() - self.cpu,
            "data": self.waited,
        }
        self.waited = 0.0
        if self.turns is not None:
            self.turns.pause()
        self._restart()
        return figures

    def result(self) -> dict[str, Any]:
        """`device_seconds[i]` lies between the ends of steps i and i + 1, counted from the first with an event."""
        if self.turns is not None:
            self.turns.end()
        if not self.events:
            return {"device_seconds": []}
        torch.cuda.synchronize()
        pairs = zip(self.events, self.events[1:])
        return {
            "first_event": self.events[0][0],
            "device_seconds": [before.elapsed_time(after) / 1e3 for (_, before), (_, after) in pairs],
            "drain_seconds": time.perf_counter() - self.wall,
        }
