"""`torchlint config`: the settings in force for a path, and where each came from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from torchlint.config import ConfigError, Settings
from torchlint.settings_file import Configuration


@click.command("config", short_help="Show the settings in force, and their origins.")
@click.argument("path", type=click.Path(path_type=Path, exists=True), default=Path())
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Take this file.")
@click.option("--isolated", is_flag=True, help="Read no settings file.")
def command(path: Path, config: Path | None, isolated: bool) -> None:
    """The settings in force for PATH, and where each came from."""
    try:
        settings = Configuration(explicit=config, isolated=isolated).for_path(path)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"# {settings.file or 'no settings file'}")
    origins = dict(settings.origins)
    for key, value in _rows(settings):
        click.echo(f"{key} = {_shown(value)}  # {origins.get(key, 'default')}")
    click.echo(f"# rules in force: {' '.join(sorted(settings.codes(path)))}")


def _rows(settings: Settings) -> Iterable[tuple[str, Any]]:
    selection = settings.selection
    yield "select", selection.select if selection.select is not None else ["ALL"]
    yield "extend-select", selection.extend_select
    yield "ignore", selection.ignore
    yield "per-file-ignores", dict(settings.per_file_ignores)
    yield "severity", {selector: severity.value for selector, severity in settings.severity}
    yield "overrides", [{"files": override.files} for override in settings.overrides]
    yield "exclude", settings.exclude
    yield "extend-exclude", settings.extend_exclude
    yield "respect-gitignore", settings.respect_gitignore
    yield "force-exclude", settings.force_exclude
    yield "unsafe-fixes", settings.unsafe_fixes
    yield "error-on", settings.error_on.value
    yield "baseline", str(settings.baseline) if settings.baseline else ""
    yield "plugins", list(map(str, settings.plugins))
    yield "target-torch", settings.target_torch
    yield "target-device", settings.target_device


def _shown(value: Any) -> str:
    """As TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return '"any"' if value is None else json.dumps(value)
