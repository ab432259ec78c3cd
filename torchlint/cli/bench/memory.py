"""`torchlint bench memory`: where the memory of a training step goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import _shared as shared
from ._shared import mb

if TYPE_CHECKING:
    import torch

    from torchlint.runtime_check.toolkit.footprint import Footprint


@click.command("memory", short_help="Memory of a training step, by category.")
@click.argument("subject")
@shared.options(*shared.training)
@shared.needs_torch
def command(subject: str, **given: Any) -> tuple[str, int]:
    """Train SUBJECT for three steps and show where its memory goes: parameters, gradients, optimizer state, buffers,
    activations and the rest, between two steps and at the step's peak, beside what Adam is known to need."""
    from torchlint.runtime_check.toolkit import device, footprint

    place = device.choose(given["device"])
    found = shared.subject_of(subject, given)
    training = shared.trainer_of(found, place, given)
    result = footprint.measure(training, found.batch(place))
    return shared.shown("memory", result, _lines(result, place), given, place)


def _lines(result: Footprint, device: torch.device) -> Iterator[str]:
    yield f"Memory of a training step with {result.optimizer} on {device.type}, MB, counted by the storages of tensors:"
    rows = [(name, mb(size), mb(result.at_peak[name])) for name, size in result.at_rest.items()]
    total = ("together", mb(sum(result.at_rest.values())), mb(result.peak))
    yield from shared.table(("", "between steps", "at the peak"), [*rows, total])
    yield f"The peak is in {result.phase}."
    if result.allocator_peak is not None:
        yield f"The allocator's peak in such a step is {mb(result.allocator_peak)} MB, workspaces of kernels included."
    budget = result.budget
    parts = (
        f"parameters {mb(budget.parameters)} + gradients {mb(budget.gradients)} + moments {mb(budget.moments)} + "
        f"buffers {mb(budget.buffers)} + activations {mb(budget.activations)}"
    )
    yield f"Budget for Adam: {parts} = {mb(budget.total)} MB."
