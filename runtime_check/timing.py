"""How long the steps of two versions take: in which way they run beside each other, and by which clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from statistics import fmean, quantiles

from .run import Run
from .schedule import Side, blocks
from .stats import compare
from .trials import ORIGINAL, Contents, FailedError, Trials
from .verdict import Environment, Overall, Protocol, Timing

_PROCESS_BYTES = 1 << 30  # of an interpreter with torch and its libraries, beside the tensors
_Block = Mapping[Side, Run]


def timing(trials: Trials, contents: Contents, what: str, environment: Environment, before: Run, after: Run) -> Timing:
    """`before` and `after` are what was observed of the two versions.

    Raises FailedError where a timed run does not come to its end.
    """
    protocol, runs = _runs(trials, contents, what, _protocol(environment, before, after))
    metric, warmup = _metric(environment, before, after), trials.timed.warmup
    seconds = {side: tuple(_figure(block[side], metric, warmup) for block in runs) for side in Side}
    steps = {side: [time for block in runs for time in block[side].step_times(metric, warmup)] for side in Side}
    waits = [_figure(run, "data", warmup) / _figure(run, "wall", warmup) for block in runs for run in block.values()]
    original, control, changed = (seconds[side] for side in Side)
    return Timing(
        metric,
        compare(original, control, changed),
        original,
        control,
        changed,
        fmean(waits) if trials.boundary == "optimizer" else None,
        trials.timed.steps - warmup,
        {side.value: tuple(quantiles(steps[side], n=20)) for side in Side if len(steps[side]) > 1},
        protocol,
    )


def _runs(trials: Trials, contents: Contents, what: str, wanted: Protocol) -> tuple[Protocol, list[_Block]]:
    """Programs that bear no company, as they use the same port or file, run one after the other."""
    if wanted is Protocol.LOCKSTEP:
        with suppress(FailedError):
            return wanted, list(_blocks(trials, contents, what, _together))
    return Protocol.SEPARATE, list(_blocks(trials, contents, what, _one_by_one))


def _blocks(
    trials: Trials, contents: Contents, what: str, run: Callable[[Trials, Mapping[Side, Contents], str, int], _Block]
) -> Iterator[_Block]:
    options = trials.options
    for number, order in enumerate(blocks(options.blocks, options.seed), 1):
        each = {side: contents if side is Side.CHANGED else ORIGINAL for side in order}
        yield run(trials, each, f"{what} (block {number} of {options.blocks})", options.seed + number)


def _together(trials: Trials, each: Mapping[Side, Contents], what: str, seed: int) -> _Block:
    return trials.time_together(each, what, seed)


def _one_by_one(trials: Trials, each: Mapping[Side, Contents], what: str, seed: int) -> _Block:
    return {side: trials.time(contents, f"{what}: {side.value}") for side, contents in each.items()}


def _protocol(environment: Environment, before: Run, after: Run) -> Protocol:
    """What works on while its program waits cannot be timed in turn: helper processes, and a device's queue."""
    is_alone = not (environment.on_gpu or before.helpers or after.helpers)
    peak = max((step.get("peak_bytes", 0.0) for run in (before, after) for step in run.steps), default=0.0)
    has_steps = environment.boundary != "program"
    return Protocol.LOCKSTEP if is_alone and has_steps and _fit(3, peak) else Protocol.SEPARATE


def _fit(count: int, peak: float) -> bool:
    """Whether so many processes have room in memory. Not every system says how much is free."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return False
    return count * (peak + _PROCESS_BYTES) < free


def _metric(environment: Environment, before: Run, after: Run) -> str:
    """Chosen before anything is timed. On a crowded machine the processor time of the program is steadier than the
    clock on the wall, but it says nothing where part of the work lies in other processes."""
    if environment.on_gpu:
        return "device"
    crowded = environment.load > 0.5 * (os.cpu_count() or 1)
    return "cpu" if crowded and not before.helpers and not after.helpers else "wall"


def _figure(run: Run, metric: str, warmup: int) -> float:
    value = run.seconds_per_step(metric, warmup)
    if value is None:
        raise FailedError(Overall.ERROR, f"only {len(run.steps)} steps came back from a timed run")
    return value
