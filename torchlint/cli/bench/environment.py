"""`torchlint bench environment`: devices, libraries and switches that decide how torch computes here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from . import _shared as shared

if TYPE_CHECKING:
    from torchlint.runtime_check.toolkit.environment import Report


@click.command("environment", short_help="Devices, libraries and switches of this machine.")
@shared.options()
@shared.needs_torch
def command(**given: Any) -> tuple[str, int]:
    """Show what decides how fast and how exactly torch computes here."""
    from torchlint.runtime_check.toolkit import environment

    result = environment.report()
    return shared.shown("environment", result, _lines(result), given, None)


def _lines(result: Report) -> Iterator[str]:
    sections: list[tuple[str, Mapping[str, Any]]] = [("torch", result.torch), ("host", result.host)]
    sections += [(facts["device"], facts) for facts in result.devices] or [("devices", {"GPU": "none visible"})]
    sections += [("precision", result.precision), ("determinism", result.determinism)]
    sections += [("allocator", result.allocator), ("packages", result.packages), ("variables", result.variables)]
    for heading, facts in sections:
        if facts:
            yield heading
            yield from (f"  {name}: {_shown(value)}" for name, value in facts.items())
    yield from (f"note: {note}" for note in result.notes)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    return "none" if value is None else str(value)
