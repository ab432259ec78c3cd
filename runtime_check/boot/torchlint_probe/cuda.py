"""What only a CUDA device can tell: its allocator's peaks, and torch's own warnings of synchronising calls."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .counting import Places
    from .settings import Settings

_MESSAGE = "called a synchronizing CUDA operation"


class Synchronisations:
    """Counts them per step and per line of the program.

    torch's mode is process-wide, says nothing of torch.cuda.synchronize() and misses pageable copies that ask not to
    block. It can be switched on only once CUDA is initialised, that is after the first step.
    """

    def __init__(self, settings: Settings, places: Places) -> None:
        self.places = places
        self.warmup = settings.warmup
        self.count = 0
        self.lines: Counter[str] = Counter()
        self.lines_of_step: Counter[str] = Counter()
        self.show: Any = None

    def listen(self) -> None:
        warnings.filterwarnings("always", message=f".*{_MESSAGE}")
        if warnings.showwarning != self._show:
            self.show, warnings.showwarning = warnings.showwarning, self._show
        torch.cuda.set_sync_debug_mode("warn")

    def _show(
        self, message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if _MESSAGE not in str(message):
            self.show(message, category, filename, lineno, file, line)
            return
        self.count += 1
        self.lines_of_step[self.places.user_line() or f"{filename}:{lineno}"] += 1

    @contextlib.contextmanager
    def deaf(self) -> Iterator[None]:
        """For what the probe itself reads."""
        if not torch.cuda.is_initialized():
            yield
            return
        torch.cuda.set_sync_debug_mode("default")
        try:
            yield
        finally:
            if self.show is not None:
                torch.cuda.set_sync_debug_mode("warn")

    def step(self, number: int) -> dict[str, float]:
        if not torch.cuda.is_initialized():
            return {}
        figures: dict[str, float] = {"syncs": self.count} if self.show is not None else {}
        self.count = 0
        self.lines += self.lines_of_step
        self.lines_of_step.clear()
        if number == self.warmup:
            self.lines.clear()
        self.listen()  # again each step: the program may have changed the warning filters
        return figures

    def result(self) -> dict[str, Any]:
        return {"sync_lines": dict(self.lines)}


class AllocatorPeaks:
    """Bytes of all devices together: alive at the end of a step, and at most during it."""

    def step(self, number: int) -> dict[str, float]:
        if not torch.cuda.is_initialized():
            return {}
        devices = range(torch.cuda.device_count())
        figures: dict[str, float] = {
            "device_bytes": sum(torch.cuda.memory_allocated(device) for device in devices),
            "device_peak_bytes": sum(torch.cuda.max_memory_allocated(device) for device in devices),
        }
        for device in devices:
            torch.cuda.reset_peak_memory_stats(device)
        return figures

    def result(self) -> dict[str, Any]:
        return {}


class Setting:
    """The device and how numbers are made on it, for the verdict's header. `helpers` are child processes and other
    ranks."""

    def __init__(self) -> None:
        self.helpers = 0

    def step(self, number: int) -> dict[str, float]:
        children = sys.modules["multiprocessing"].active_children() if "multiprocessing" in sys.modules else ()
        self.helpers = max(self.helpers, len(children) + _other_ranks())
        return {}

    def result(self) -> dict[str, Any]:
        on_cuda = torch.cuda.is_initialized()
        return {
            "device": "cuda" if on_cuda else "cpu",
            "device_name": torch.cuda.get_device_name() if on_cuda else _first("/proc/cpuinfo", "model name"),
            "driver": _first("/proc/driver/nvidia/version", "NVRM version") if on_cuda else None,
            "torch": torch.__version__,
            "cuda": torch.version.cuda if on_cuda else None,
            "helpers": self.helpers,
            "threads": torch.get_num_threads(),
        }


def _other_ranks() -> int:
    distributed = torch.distributed
    return distributed.get_world_size() - 1 if distributed.is_available() and distributed.is_initialized() else 0


def _first(file: str, key: str) -> str | None:
    """The value of the first line `key: value` of one of Linux's tables."""
    try:
        with open(file, encoding="utf-8") as table:
            return next((line.partition(":")[2].strip() for line in table if line.startswith(key)), None)
    except OSError:
        return None
