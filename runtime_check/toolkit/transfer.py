"""How fast data moves between host and device, by size, from pageable and from pinned memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from .device import MIB, synchronize
from .subject import is_out_of_memory

SIZES_MB = (1, 4, 16, 64, 256, 1024)
TO_DEVICE, TO_HOST, WITHIN_HOST = "host to device", "device to host", "host to host"
_WARMUP = 2


@dataclass(frozen=True, slots=True)
class Copy:
    """One direction, kind of host memory and size, with the seconds of every repetition."""

    direction: str
    pinned: bool
    bytes: int
    seconds: tuple[float, ...]

    @property
    def typical(self) -> float:
        return median(self.seconds)

    @property
    def gb_per_s(self) -> float:
        """In 10**9 bytes."""
        return self.bytes / self.typical / 1e9


@dataclass(frozen=True, slots=True)
class Line:
    """Seconds of a copy = `latency` + bytes / `bytes_per_s`, fitted over all sizes."""

    direction: str
    pinned: bool
    latency: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Transfers:
    """`skipped` says which sizes were left out, and why."""

    copies: tuple[Copy, ...]
    lines: tuple[Line, ...]
    skipped: tuple[str, ...]


def measure(
    device: torch.device,
    sizes_mb: Sequence[int] = SIZES_MB,
    repeats: int = 7,
    progress: Callable[[str], None] = lambda message: None,
) -> Transfers:
    """Copy each size (MiB) there and back, timed from an idle device until the copy has arrived. Without a GPU there is
    one direction, from host memory to host memory."""
    copies: list[Copy] = []
    skipped: list[str] = []
    for size in sizes_mb:
        progress(f"{size} MB")
        if reason := _does_not_fit(size * MIB, device):
            skipped.append(f"{size} MB: {reason}")
            continue
        try:
            copies += _copies(size * MIB, device, repeats)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            skipped.append(f"{size} MB: out of memory")
    return Transfers(tuple(copies), tuple(fit(copies)), tuple(skipped))


def _does_not_fit(size: int, device: torch.device) -> str:
    copies = 2 if device.type == "cpu" else 1
    free = available_memory()
    if free is not None and copies * size > free // 2:
        return f"only {free // MIB} MB of host memory are free"
    if device.type == "cuda" and size > (left := torch.cuda.mem_get_info(device)[0]):
        return f"only {left // MIB} MB of device memory are free"
    return ""


def available_memory() -> int | None:
    """Bytes of host memory that are free now; None where the system does not tell."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _copies(size: int, device: torch.device, repeats: int) -> Iterator[Copy]:
    for pinned in (False, True) if device.type == "cuda" else (False,):
        host = torch.ones(size, dtype=torch.uint8, pin_memory=pinned)  # written to, so that every page is there
        other = torch.ones(size, dtype=torch.uint8, device=device)
        if device.type == "cpu":
            yield Copy(WITHIN_HOST, pinned, size, _timed(host, other, device, repeats))
            continue
        yield Copy(TO_DEVICE, pinned, size, _timed(host, other, device, repeats))
        yield Copy(TO_HOST, pinned, size, _timed(other, host, device, repeats))


def _timed(source: torch.Tensor, target: torch.Tensor, device: torch.device, repeats: int) -> tuple[float, ...]:
    seconds = []
    for _ in range(_WARMUP + repeats):
        synchronize(device)
        start = time.perf_counter()
        target.copy_(source, non_blocking=True)
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return tuple(seconds[_WARMUP:])


def fit(copies: Sequence[Copy]) -> Iterator[Line]:
    """One line for each direction and kind of memory that has at least two sizes. Relative errors are minimised, so
    that the small copies decide the latency and the large ones the bandwidth."""
    for direction, pinned in dict.fromkeys((copy.direction, copy.pinned) for copy in copies):
        points = [(c.bytes, c.typical) for c in copies if (c.direction, c.pinned) == (direction, pinned)]
        if len({size for size, _ in points}) > 1:
            latency, per_byte = _weighted_line(points)
            yield Line(direction, pinned, latency, 1 / per_byte)


def _weighted_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope with the least sum of squared relative errors; the intercept is not below zero."""
    weights = [1 / y**2 for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points)) / total
    covariance = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points))
    variance = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points))
    slope = covariance / variance
    intercept = mean_y - slope * mean_x
    if intercept >= 0 and slope > 0:
        return intercept, slope
    through_zero = sum(w * x * y for w, (x, y) in zip(weights, points)) / sum(
        w * x * x for w, (x, _) in zip(weights, points)
    )
    return 0.0, through_zero
