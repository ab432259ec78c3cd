"""The largest batch that can be trained within the device's memory, or within a given one."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import linear_regression

import torch

from .device import MIB
from .errors import ToolError
from .live import LiveStorages, OverBudgetError
from .memory import GPUMemoryTracker
from .step import MakeOptimizer, trainer
from .subject import Subject, is_out_of_memory
from .transfer import available_memory

Make = Callable[[int], Subject]
_STEPS = 2  # the optimizer's state exists from the first step on, so that the second needs most


@dataclass(frozen=True, slots=True)
class Trial:
    """One size, whether it fits, and the most memory that its training steps had in use (None where they failed)."""

    batch_size: int
    fits: bool
    peak_bytes: int | None


@dataclass(frozen=True, slots=True)
class Search:
    """`largest` is 0 when not even the first size fits. `limited_by` is "memory", or "limit" when the largest size that
    was allowed still fits."""

    largest: int
    limited_by: str
    limit_bytes: int | None
    trials: tuple[Trial, ...]

    @property
    def bytes_per_sample(self) -> float | None:
        line = self._line()
        return line[0] if line else None

    @property
    def fixed_bytes(self) -> float | None:
        line = self._line()
        return line[1] if line else None

    def _line(self) -> tuple[float, float] | None:
        points = [(trial.batch_size, trial.peak_bytes) for trial in self.trials if trial.peak_bytes is not None]
        if len(points) < 2:
            return None
        fit = linear_regression(*zip(*points, strict=True))
        return fit.slope, fit.intercept


def search(
    fits: Callable[[int], Trial],
    start: int = 1,
    largest: int = 1 << 16,
    powers_of_two: bool = False,
    limit_bytes: int | None = None,
) -> Search:
    """Double the size until it does not fit, then halve the gap between the last that did and the first that did not.

    With `powers_of_two` the doubling is all.
    """
    trials: dict[int, Trial] = {}

    def good(size: int) -> bool:
        trials[size] = fits(size)
        return trials[size].fits

    low, high, size = 0, 0, min(start, largest)
    while not high and low < largest:
        if good(size):
            low, size = size, min(2 * size, largest)
        else:
            high = size
    while high - low > 1 and low and not powers_of_two:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return Search(low, "memory" if high else "limit", limit_bytes, tuple(trials.values()))


def measure(
    make: Make,
    optimizer: MakeOptimizer,
    device: torch.device,
    *,
    start: int = 1,
    largest: int = 1 << 16,
    powers_of_two: bool = False,
    limit_mb: float | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> Search:
    """Train two steps with batches of growing size; everything is freed between two sizes.

    `limit_mb` is the memory to stay within, counted by storages. A GPU needs none: its own is the limit. On the CPU,
    where running out of memory would stop the whole machine, half of what is free is the default.
    """
    limit = _limit(device, limit_mb)

    def trial(size: int) -> Trial:
        found = _trial(make, optimizer, device, size, limit)
        shown = f"{found.peak_bytes / MIB:.1f} MB" if found.peak_bytes is not None else "does not fit"
        progress(f"batch size {size}: {shown}")
        _free(device)
        return found

    return search(trial, start, largest, powers_of_two, limit)


def _limit(device: torch.device, limit_mb: float | None) -> int | None:
    if limit_mb is not None:
        return round(limit_mb * MIB)
    if device.type == "cuda":
        return None
    free = available_memory()
    if free is None:
        raise ToolError("this system does not say how much memory is free: give --memory MB")
    return free // 2


def _trial(make: Make, optimizer: MakeOptimizer, device: torch.device, size: int, limit: int | None) -> Trial:
    try:
        return Trial(size, True, _peak(make, optimizer, device, size, limit))
    except Exception as error:
        if not isinstance(error, OverBudgetError) and not is_out_of_memory(error):
            raise _explained(error, size) from error
    return Trial(size, False, None)  # outside of the handler, whose traceback would keep all tensors alive


def _peak(make: Make, optimizer: MakeOptimizer, device: torch.device, size: int, limit: int | None) -> int:
    if limit is None:
        with GPUMemoryTracker(device) as tracker:
            _train(make, optimizer, device, size)
        return round(tracker.peak_memory_mb * MIB)
    live = LiveStorages(device, limit)
    with live:
        _train(make, optimizer, device, size)
    return live.peak


def _train(make: Make, optimizer: MakeOptimizer, device: torch.device, size: int) -> None:
    subject = make(size)
    model = subject.trained(device)
    batch = subject.batch(device)
    training = trainer(model, subject.loss, optimizer, device)
    for _ in range(_STEPS):
        training.step(batch)


def _explained(error: Exception, size: int) -> Exception:
    if isinstance(error, ToolError):
        return ToolError(f"batch size {size}: {error}")
    return error


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
