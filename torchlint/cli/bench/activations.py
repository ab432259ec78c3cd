"""`torchlint bench activations`: what the forward pass keeps for the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import _shared as shared
from ._shared import mb

if TYPE_CHECKING:
    from torchlint.runtime_check.toolkit.activations import Activations


@click.command("activations", short_help="Activation memory, module by module.")
@click.argument("subject")
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="So many modules.")
@shared.options(shared.inputs, shared.batch_size, shared.device)
@shared.needs_torch
def command(subject: str, **given: Any) -> tuple[str, int]:
    """Run the forward pass and loss of SUBJECT once and show which modules save how much for the backward pass."""
    from torchlint.runtime_check.toolkit import activations, device

    place = device.choose(given["device"])
    found = shared.subject_of(subject, given)
    model, batch = found.trained(place).train(), found.batch(place)
    result = activations.measure(model, lambda: found.loss(model, batch), batch)
    return shared.shown("activations", result, _lines(result, given["top"]), given, place)


def _lines(result: Activations, top: int) -> Iterator[str]:
    data = f"beside {mb(result.batch_bytes)} MB of data"
    yield f"The forward pass keeps {mb(result.bytes)} MB for the backward pass, {data}:"
    rows = [
        (module.name, module.kind, mb(module.bytes), f"{module.bytes / result.bytes:.0%}", str(module.tensors))
        for module in result.modules[:top]
    ]
    if rows:
        yield from shared.table(("module", "", "MB", "share", "tensors"), rows, left=2)
    if (more := len(result.modules) - top) > 0:
        rest = sum(module.bytes for module in result.modules[top:])
        yield f"  and {more} more with {mb(rest)} MB"
    yield "A storage counts once, for the module that saved it first; parameters and buffers do not count."
