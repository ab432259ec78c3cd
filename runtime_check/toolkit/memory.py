"""`GPUMemoryTracker`: how much memory a piece of code needs, on a GPU or on the CPU."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Protocol

import torch

from .device import MIB, choose
from .live import LiveStorages, existing_tensors


class _Gauge(Protocol):
    source: str

    def open(self) -> None: ...
    def close(self) -> None: ...
    def allocated(self) -> int: ...
    def peak(self) -> int: ...


class GPUMemoryTracker:
    """Measures the memory of a block of code on one device.

        with GPUMemoryTracker() as tracker:
            train_step()
        print(tracker.peak_memory_mb, tracker.memory_delta_mb)

    `device`: as for `torch.device`; the current CUDA device if there is one, or else the CPU.

    Figures are in MiB (2**20 bytes) and may be read inside the block, too. Scopes may be nested and run one after the
    other: an inner one does not hide the peak of an outer one. `source` says where the figures come from: on CUDA the
    caching allocator, whose peak statistics a tracker resets when it starts; on the CPU the storages of live tensors,
    as far as Python sees them (not what only an autograd graph held before the block, nor a kernel's workspace). On the
    CPU every operator passes through Python, so what runs in the block must not be timed.

    Raises ToolError for a device that is not there, RuntimeError when figures are read of a block that never started.
    """

    def __init__(self, device: str | int | torch.device | None = None) -> None:
        self.device = choose(device)
        self._gauge: _Gauge | None = None
        self._start = 0
        self._end: tuple[int, int] | None = None

    def __enter__(self) -> GPUMemoryTracker:
        self._gauge = _Allocator(self.device) if self.device.type == "cuda" else _Storages(self.device)
        self._end = None
        self._gauge.open()
        self._start = self._gauge.allocated()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gauge = self._opened()
        gauge.close()
        self._end = gauge.allocated(), gauge.peak()

    @property
    def peak_memory_mb(self) -> float:
        """The most that was allocated on the device at any moment of the block, with what was there before it."""
        return self._figures()[1] / MIB

    @property
    def memory_delta_mb(self) -> float:
        """What is allocated at the end of the block less what was at its start; negative if it freed more."""
        return (self._figures()[0] - self._start) / MIB

    @property
    def peak_above_start_mb(self) -> float:
        """The most that the block needed on top of what was there before it."""
        return (self._figures()[1] - self._start) / MIB

    @property
    def source(self) -> str:
        return self._opened().source

    def __str__(self) -> str:
        peak, above = f"peak {self.peak_memory_mb:.2f} MB", f"{self.peak_above_start_mb:.2f} MB above the start"
        return f"{peak} ({above}), {self.memory_delta_mb:+.2f} MB at the end, on {self.device} by {self.source}"

    def _figures(self) -> tuple[int, int]:
        gauge = self._opened()
        return self._end or (gauge.allocated(), gauge.peak())

    def _opened(self) -> _Gauge:
        if self._gauge is None:
            raise RuntimeError("the tracker has not measured anything yet: use it in a `with` statement")
        return self._gauge


class _Storages:
    source = "the storages of live tensors"

    def __init__(self, device: torch.device) -> None:
        self._live = LiveStorages(device)

    def open(self) -> None:
        self._live.know(existing_tensors())
        self._live.peak = self._live.bytes
        self._live.__enter__()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        self._live.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def allocated(self) -> int:
        return self._live.bytes

    def peak(self) -> int:
        return self._live.peak


class _Allocator:
    """The allocator has one peak per device, which starting a scope resets: every open scope keeps what it was."""

    source = "the caching allocator"
    _open: list[_Allocator] = []  # noqa: RUF012  as global as the statistics that it guards
    _lock = threading.Lock()

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._peak = 0

    def open(self) -> None:
        torch.cuda.synchronize(self._device)
        with self._lock:
            self._keep_peaks()
            self._open.append(self)

    def close(self) -> None:
        torch.cuda.synchronize(self._device)
        with self._lock:
            self._keep_peaks()
            self._open.remove(self)

    def allocated(self) -> int:
        return torch.cuda.memory_allocated(self._device)

    def peak(self) -> int:
        with self._lock:
            if self in self._open:
                self._keep_peaks()
        return self._peak

    def _keep_peaks(self) -> None:
        peak = torch.cuda.max_memory_allocated(self._device)
        for gauge in self._open:
            if gauge._device == self._device:
                gauge._peak = max(gauge._peak, peak)
        torch.cuda.reset_peak_memory_stats(self._device)
