"""`torchlint bench loader`: a loader's time against the training step's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import _running as running

from . import _shared as shared
from ._shared import seconds

if TYPE_CHECKING:
    from torchlint.runtime_check.toolkit.loading import Loading, Sweep


@click.command("loader", short_help="Sweep workers and prefetching of a DataLoader.")
@click.argument("subject")
@click.option("--workers", callback=shared.numbers, help="Numbers of workers; powers of two unless given.")
@click.option("--prefetch", default="2,4", show_default=True, callback=shared.numbers, help="Batches ahead per worker.")
@click.option("--batches", type=click.IntRange(min=2), default=50, show_default=True, help="Read in each setting.")
@shared.options(*shared.training)
@shared.needs_torch
def command(
    subject: str, workers: tuple[int, ...], prefetch: tuple[int, ...], batches: int, **given: Any
) -> tuple[str, int]:
    """Read the DataLoader of SUBJECT with several numbers of workers, alone and with a training step after each batch,
    and say how long the step waits. A SUBJECT that returns only the loader is read alone."""
    from torchlint.runtime_check.toolkit import device, loading

    if not prefetch or 0 in prefetch:
        raise click.UsageError("--prefetch needs at least one number, and no zero")
    place = device.choose(given["device"])
    found = shared.subject_of(subject, given)
    training = shared.trainer_of(found, place, given) if found.model is not None else None
    tried = loading.settings(workers or loading.usual_workers(), prefetch, place)
    result = loading.measure(found.loader, training, place, tried, batches, running.say(given))
    return shared.shown("loader", result, _lines(result, device.describe(place)), given, place)


def _lines(result: Sweep, name: str) -> Iterator[str]:
    yield f"Loading on {name}, {result.rows[0].batches} batches in each setting:"
    heading = ("workers", "prefetch", "first batch", "batch alone", "step with batch", "wait", "share")
    yield from shared.table(heading, map(_row, result.rows), left=0)
    if result.step is not None:
        yield f"A step whose batch is on the device already takes {seconds(result.step)}."
    best = result.best.setting
    ahead = f", prefetch_factor={best.prefetch}" if best.prefetch else ""
    pinned = ", pin_memory=True" if best.pinned else ""
    yield f"Best here: num_workers={best.workers}{ahead}{pinned}"


def _row(row: Loading) -> tuple[str, ...]:
    share = "-" if row.wait_share is None else f"{row.wait_share:.0%}"
    times = map(seconds, (row.first, row.alone, row.per_step, row.wait))
    return str(row.setting.workers), str(row.setting.prefetch or "-"), *times, share
