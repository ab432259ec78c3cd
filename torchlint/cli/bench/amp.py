"""`torchlint bench amp`: mixed precision on the user's model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import _running as running

from . import _shared as shared
from ._shared import mb, seconds

if TYPE_CHECKING:
    import torch

    from torchlint.runtime_check.toolkit.precision import Precisions, Training

_BATCHES = 8


@click.command("amp", short_help="Compare fp32, tf32, bf16 and fp16.")
@click.argument("subject")
@click.option("--precisions", default="tf32,bf16,fp16", show_default=True, help="What to compare with fp32.")
@click.option("--steps", type=click.IntRange(min=1), default=100, show_default=True, help="Training steps observed.")
@click.option("--blocks", type=click.IntRange(min=0), default=5, show_default=True, help="Timed rounds; 0: no timing.")
@click.option("--block-steps", type=click.IntRange(min=1), default=10, show_default=True, help="Steps in a round.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random numbers.")
@shared.options(*shared.training)
@shared.needs_torch
def command(
    subject: str, precisions: str, steps: int, blocks: int, block_steps: int, seed: int, **given: Any
) -> tuple[str, int]:
    """Train SUBJECT in each precision from the same parameters, and compare losses, overflows, memory and time."""
    import torch

    from torchlint.runtime_check.toolkit import device, precision
    from torchlint.runtime_check.toolkit.step import optimizer_maker

    torch.manual_seed(seed)
    place = device.choose(given["device"])
    found = shared.subject_of(subject, given)
    make = optimizer_maker(given["optimizer"], given["lr"])
    setup = precision.Setup(found.trained(place), found.loss, make, found.batches(place, _BATCHES), place, seed)
    names = [name.strip() for name in precisions.split(",") if name.strip()]
    result = precision.compare(setup, names, steps, blocks, block_steps, running.say(given))
    return shared.shown("amp", result, _lines(result, place, device.describe(place), found.has_own_loss), given, place)


def _lines(result: Precisions, device: torch.device, name: str, has_own_loss: bool) -> Iterator[str]:
    steps = len(result.trainings[0].losses)
    yield f"{steps} training steps on {device} ({name}):"
    heading = ("", "pace", "time / fp32", "step", "peak MB", "last loss", "loss gap", "bad losses", "bad gradients")
    yield from shared.table(heading, map(_row, result.trainings), left=2)
    yield from (f"left out: {reason}" for reason in result.left_out)
    if not has_own_loss:
        yield "The subject gives no loss: the gap is that of a stand-in, and says little."
    yield "Peaks come on top of model and data; the loss gap is the largest relative distance from fp32."


def _row(training: Training) -> tuple[str, ...]:
    times = sorted(training.seconds_per_step)
    pace = training.pace
    ratio = f"{pace.effect.ratio:.2f} ({pace.effect.low:.2f} to {pace.effect.high:.2f})" if pace else ""
    return (
        training.precision,
        pace.pace.value.replace("_", " ") if pace else "",
        ratio,
        seconds(times[len(times) // 2] if times else None),
        mb(training.peak_bytes),
        f"{training.losses[-1]:.5g}",
        f"{training.loss_gap:.2g}",
        str(training.bad_losses),
        str(training.bad_gradients),
    )
