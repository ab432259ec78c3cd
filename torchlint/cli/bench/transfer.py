"""`torchlint bench transfer`: how fast data moves between host and device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import _running as running

from . import _shared as shared
from ._shared import seconds

if TYPE_CHECKING:
    import torch

    from torchlint.runtime_check.toolkit.transfer import Transfers

_BAR = 30


@click.command("transfer", short_help="Bandwidth between host and device.")
@click.option(
    "--sizes", default="1,4,16,64,256,1024", show_default=True, callback=shared.numbers, help="Sizes to copy, in MB."
)
@click.option("--repeats", type=click.IntRange(min=1), default=7, show_default=True, help="Copies of each size.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write the curves into this SVG file.")
@shared.options(shared.device)
@shared.needs_torch
def command(sizes: tuple[int, ...], repeats: int, plot: Path | None, **given: Any) -> tuple[str, int]:
    """Copy 1 MB to 1 GB in both directions, from pageable and from pinned memory, and fit latency and bandwidth.

    Without a GPU only copies within the host's memory can be measured, and the report says so.
    """
    from torchlint.runtime_check.toolkit import device, transfer

    if not sizes or 0 in sizes:
        raise click.UsageError("--sizes needs at least one size, and no zero")
    place = device.choose(given["device"])
    result = transfer.measure(place, sizes, repeats, running.say(given))
    if plot is not None:
        _write(plot, result, f"{place}, {device.describe(place)}")
    return shared.shown("transfer", result, _lines(result, place, device.describe(place)), given, place)


def _name(direction: str, pinned: bool) -> str:
    return f"{direction}, {'pinned' if pinned else 'pageable'}"


def _write(path: Path, result: Transfers, where: str) -> None:
    from torchlint.runtime_check.toolkit.plot import curves

    series: dict[str, list[tuple[float, float]]] = {}
    for copy in result.copies:
        series.setdefault(_name(copy.direction, copy.pinned), []).append((copy.bytes / 2**20, copy.gb_per_s))
    try:
        path.write_text(curves(f"Transfers on {where}", "MB", "GB/s", series), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise shared.Failure(f"no plot in {path}: {error}") from error


def _lines(result: Transfers, device: torch.device, name: str) -> Iterator[str]:
    yield f"Transfers on {device} ({name}):"
    top = max((copy.gb_per_s for copy in result.copies), default=1.0)
    rows = [
        (
            _name(copy.direction, copy.pinned),
            "#" * max(1, round(_BAR * copy.gb_per_s / top)),
            f"{copy.bytes / 2**20:g}",
            seconds(copy.typical),
            f"{copy.gb_per_s:.2f}",
        )
        for copy in sorted(result.copies, key=lambda copy: (copy.direction, copy.pinned, copy.bytes))
    ]
    yield from shared.table(("", "", "MB", "time", "GB/s"), rows, left=2)
    for line in result.lines:
        fitted = f"{seconds(line.latency)} + size / ({line.bytes_per_s / 1e9:.2f} GB/s)"
        yield f"fitted, {_name(line.direction, line.pinned)}: {fitted}"
    yield from (f"left out: {reason}" for reason in result.skipped)
    if device.type == "cpu":
        yield "There is no GPU in this: data were copied within the host's memory."
