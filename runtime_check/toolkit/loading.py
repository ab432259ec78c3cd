"""Does the training step wait for its data? A loader's time against the step's, over numbers of workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from .device import synchronize
from .errors import ToolError
from .step import Trainer
from .subject import failing, to_device

ENOUGH = 0.05  # of a step: a shorter wait is not worth another worker
_WARMUP = 3
_STEPS = 10


@dataclass(frozen=True, slots=True)
class Setting:
    """`prefetch`: batches that each worker keeps ready; None without workers."""

    workers: int
    prefetch: int | None
    pinned: bool


@dataclass(frozen=True, slots=True)
class Loading:
    """Seconds, over `batches` batches: until the first one came, then for each when nothing else happens; of a training
    step with its batch, and how long the host waited for the batch in it. The last three are None without a step."""

    setting: Setting
    batches: int
    first: float
    alone: float
    per_step: float | None
    wait: float | None
    wait_share: float | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """`step` is the time of one training step whose batch is on the device already, None where none was given."""

    step: float | None
    rows: tuple[Loading, ...]

    @property
    def best(self) -> Loading:
        return choose(self.rows)


def settings(workers: Sequence[int], prefetch: Sequence[int], device: torch.device) -> list[Setting]:
    """Every number of workers with every depth, in the order of the workers. Batches for a GPU are pinned."""
    pinned = device.type == "cuda"
    depths = {count: tuple(prefetch) if count else (None,) for count in sorted(set(workers))}
    return [Setting(count, depth, pinned) for count, tried in depths.items() for depth in tried]


def usual_workers() -> tuple[int, ...]:
    """None, and powers of two up to the number of cores of this process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return (0, *(1 << power for power in range(cores.bit_length()) if 1 << power <= cores))


def measure(
    loader: DataLoader[Any],
    training: Trainer | None,
    device: torch.device,
    tried: Sequence[Setting],
    batches: int = 50,
    progress: Callable[[str], None] = lambda message: None,
) -> Sweep:
    """Read up to `batches` batches in each setting, alone and with a training step after each.

    Raises ToolError for a loader that cannot be rebuilt, fails, or has too few batches.
    """
    if batches < 2:
        raise ToolError("at least two batches are needed: the first one waits for the workers to start")
    step = _step_seconds(loader, training, device) if training else None
    rows = []
    for setting in tried:
        progress(f"{setting.workers} workers" + (f", prefetch {setting.prefetch}" if setting.prefetch else ""))
        rows.append(_loading(rebuilt(loader, setting), setting, training, device, batches))
    return Sweep(step, tuple(rows))


def rebuilt(loader: DataLoader[Any], setting: Setting) -> DataLoader[Any]:
    """The same data in the same order, read by other workers."""
    if type(loader) is not DataLoader:
        raise ToolError(f"{type(loader).__name__} is no plain DataLoader, so it cannot be made anew with other workers")
    options: dict[str, Any] = {
        "collate_fn": loader.collate_fn,
        "worker_init_fn": loader.worker_init_fn,
        "generator": loader.generator,
        "num_workers": setting.workers,
        "pin_memory": setting.pinned,
    }
    if setting.workers:
        options.update(prefetch_factor=setting.prefetch, timeout=loader.timeout)
        options.update(multiprocessing_context=loader.multiprocessing_context)
    if isinstance(loader.dataset, IterableDataset):
        options.update(batch_size=loader.batch_size, drop_last=loader.drop_last)
    elif loader.batch_sampler is not None:
        options.update(batch_sampler=loader.batch_sampler)
    else:
        options.update(batch_size=None, sampler=loader.sampler)
    return DataLoader(loader.dataset, **options)


def choose(rows: Sequence[Loading]) -> Loading:
    """The fewest workers with which a step hardly waits, or the setting with the shortest wait; without a step the
    fewest workers that are within a twentieth of the fastest."""
    cost = {row: row.alone if row.wait is None else row.wait for row in rows}
    fastest = min(cost.values())
    enough = [row for row in rows if (row.wait_share is not None and row.wait_share <= ENOUGH)]
    near = [row for row in rows if cost[row] <= fastest * (1 + ENOUGH)]
    return min(enough or near, key=lambda row: (row.setting.workers, row.setting.prefetch or 0))


def _loading(
    loader: DataLoader[Any], setting: Setting, training: Trainer | None, device: torch.device, batches: int
) -> Loading:
    waits = [seconds for seconds, _ in _waits(loader, batches)]
    if len(waits) < 2:
        raise ToolError(f"the loader has {len(waits)} batches; two are the least that can be measured")
    first, alone = waits[0], fmean(waits[1:])
    if training is None:
        return Loading(setting, len(waits), first, alone, None, None, None)
    waited, total = _with_steps(loader, training, device, batches)
    per_step = total / (len(waited) + 1)
    return Loading(setting, len(waits), first, alone, per_step, fmean(waited), sum(waited) / total)


def _with_steps(
    loader: DataLoader[Any], training: Trainer, device: torch.device, batches: int
) -> tuple[list[float], float]:
    """The wait for each batch but the first, and the seconds from the first batch on. The device is waited for in
    the end only, so that copies and steps overlap as they do in training."""
    waited = []
    begin = 0.0
    for number, (seconds, batch) in enumerate(_waits(loader, batches)):
        if number:
            waited.append(seconds)
        else:
            begin = time.perf_counter()
        training.step(to_device(batch, device, non_blocking=True))
    synchronize(device)
    return waited, time.perf_counter() - begin


def _waits(loader: DataLoader[Any], batches: int) -> Iterator[tuple[float, Any]]:
    """The first `batches` batches, each with the seconds that asking for it took; workers are stopped in the end."""
    start = time.perf_counter()
    with failing("the DataLoader fails"):
        iterator = iter(loader)
    for _ in range(batches):
        try:
            with failing("the DataLoader fails"):
                batch = next(iterator, None)
        except MemoryError as error:
            raise ToolError("the DataLoader runs out of memory") from error
        if batch is None:
            return
        yield time.perf_counter() - start, batch
        start = time.perf_counter()


def _step_seconds(loader: DataLoader[Any], training: Trainer, device: torch.device) -> float:
    with failing("the DataLoader fails"):
        batch = to_device(next(iter(loader)), device)
    for _ in range(_WARMUP):
        training.step(batch)
    synchronize(device)
    start = time.perf_counter()
    for _ in range(_STEPS):
        training.step(batch)
    synchronize(device)
    return (time.perf_counter() - start) / _STEPS
