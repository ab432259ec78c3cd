"""`torchlint new-rule`: the files of a rule of one's own."""

from __future__ import annotations

import re
from pathlib import Path

import click

from torchlint.config import ConfigError, find_code
from torchlint.scaffold import files_of_package, files_of_rule
from torchlint.settings_file import Configuration

FOLDER = "lint_rules"


@click.command("new-rule", short_help="Begin a rule of your own, with its page, fix and test.")
@click.argument("code")
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.option("--package", is_flag=True, help="Make FOLDER a package for others to install.")
def command(code: str, name: str, folder: Path | None, package: bool) -> None:
    """Write a rule that works and passes its test into FOLDER (lint_rules unless given), for you to change.

    CODE is capital letters and two digits, such as ACME01; NAME says the problem in words with hyphens between, such as
    old-inverse.
    """
    _check(code, name)
    folder = folder or Path(f"torchlint-{code.rstrip('0123456789').lower()}" if package else FOLDER)
    files = files_of_package(code, name, folder.resolve().name) if package else files_of_rule(code, name)
    there = [folder / path for path in files if (folder / path).exists()]
    if there:
        raise click.UsageError(f"{there[0]} is there already")
    for path, text in files.items():
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"{folder / path}: {error.strerror}") from error
        click.echo(f"Wrote {folder / path}", err=True)
    _say_what_is_next(code, folder, package)


def _check(code: str, name: str) -> None:
    if not re.fullmatch(r"[A-Z]+\d\d", code):
        raise click.UsageError(f"CODE: `{code}` is not capital letters and two digits, such as ACME01")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", name):
        raise click.UsageError(f"NAME: `{name}` is not words in lower case with hyphens between, such as old-inverse")
    try:
        Configuration().for_folder(Path.cwd())  # which loads the plugins that the settings name
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    for given in (code, name):
        try:
            taken = find_code(given)
        except ConfigError:
            continue
        raise click.UsageError(f"`{given}` is taken, as `torchlint rule {taken}` shows")


def _say_what_is_next(code: str, folder: Path, package: bool) -> None:
    where = folder.as_posix()
    if package:
        click.echo(f"\nInstall it:  python -m pip install -e {where}", err=True)
    else:
        click.echo(f'\nSwitch it on in the settings:  plugins = ["./{where}"]', err=True)
        click.echo(f"or for one call:               torchlint check --plugin {where} .", err=True)
    click.echo(f"Test it:                       python -m pytest --import-mode=importlib {where}", err=True)
    click.echo(f"Read its page:                 torchlint rule {code}", err=True)
