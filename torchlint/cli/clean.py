"""`torchlint clean`: delete the cache."""

from __future__ import annotations

from pathlib import Path

import click

from torchlint.config import ConfigError
from torchlint.running.cache import FOLDER, remove
from torchlint.settings_file import Configuration


@click.command("clean", short_help="Delete the cache.")
def command() -> None:
    """Delete the cache folder of the project that the working directory belongs to."""
    try:
        root = Configuration().for_folder(Path.cwd()).root
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    for folder in dict.fromkeys((root / FOLDER, Path.cwd() / FOLDER)):
        try:
            if remove(folder):
                click.echo(f"Removed {folder}", err=True)
        except OSError as error:
            raise click.UsageError(f"{folder} cannot be removed: {error.strerror}") from error
