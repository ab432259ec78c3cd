"""`torchlint bench batch-size`: the largest batch that can be trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import _running as running

from . import _shared as shared
from ._shared import mb

if TYPE_CHECKING:
    import torch

    from torchlint.runtime_check.toolkit.batch_size import Search
    from torchlint.runtime_check.toolkit.subject import Subject


@click.command("batch-size", short_help="Find the largest batch that fits.")
@click.argument("subject")
@click.option("--start", type=click.IntRange(min=1), default=1, show_default=True, help="The first size.")
@click.option("--largest", type=click.IntRange(min=1), default=65536, show_default=True, help="The last size.")
@click.option("--powers-of-two", is_flag=True, help="Double the size, and nothing finer.")
@click.option("--memory", "limit_mb", type=click.FloatRange(min=1), help="Stay within so many MB.")
@shared.options(shared.inputs, shared.device, shared.optimizer, shared.learning_rate)
@shared.needs_torch
def command(
    subject: str, start: int, largest: int, powers_of_two: bool, limit_mb: float | None, **given: Any
) -> tuple[str, int]:
    """Train SUBJECT with larger and larger batches, two steps each, until memory runs out; then search between.

    SUBJECT takes `batch_size`, or is given its data by --input. On the CPU memory is counted, and half of what is free
    is the limit unless --memory gives another: nothing ever runs out.
    """
    from torchlint.runtime_check.toolkit import batch_size, device
    from torchlint.runtime_check.toolkit.step import optimizer_maker
    from torchlint.runtime_check.toolkit.subject import build, find, takes_batch_size

    if not given["inputs"] and not takes_batch_size(find(subject)):
        raise shared.Failure(f"{subject} takes no `batch_size`, which the search varies; or give --input N,...")

    def make(size: int) -> Subject:
        return build(subject, given["inputs"], size)

    place = device.choose(given["device"])
    optimizer = optimizer_maker(given["optimizer"], given["lr"])
    result = batch_size.measure(
        make,
        optimizer,
        place,
        start=start,
        largest=largest,
        powers_of_two=powers_of_two,
        limit_mb=limit_mb,
        progress=running.say(given),
    )
    return shared.shown("batch-size", result, _lines(result, place), given, place)


def _lines(result: Search, device: torch.device) -> Iterator[str]:
    limit = f"{mb(result.limit_bytes)} MB" if result.limit_bytes is not None else f"the memory of {device}"
    rows = [
        (
            str(trial.batch_size),
            "-" if trial.peak_bytes is None else mb(trial.peak_bytes),
            "yes" if trial.fits else "no",
        )
        for trial in result.trials
    ]
    yield from shared.table(("batch size", "peak MB", "fits"), rows, left=0)
    if not result.largest:
        yield f"Not even {result.trials[0].batch_size} fits into {limit}."
    elif result.limited_by == "limit":
        yield f"{result.largest}, the largest size tried, still fits into {limit}."
    else:
        yield f"The largest batch size that fits into {limit} is {result.largest}."
    if result.bytes_per_sample is not None and result.fixed_bytes is not None:
        yield f"About {mb(result.fixed_bytes)} MB, and {mb(result.bytes_per_sample)} MB for each sample."
    if device.type == "cpu":
        yield "Memory is that of tensors, counted on the CPU."
