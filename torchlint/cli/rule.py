"""`torchlint rule`: the page of a rule in the terminal, or all pages as a site."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from torchlint.config import ConfigError, find_code
from torchlint.files.atomic import replace_file
from torchlint.pages import Page, all_pages, markdown, page
from torchlint.settings_file import Configuration
from torchlint.terminal import use_color


@click.command("rule", short_help="Show the page of a rule.")
@click.argument("rule", required=False, metavar="CODE|NAME|FAMILY")
@click.option("--all", "every", is_flag=True, help="A line for every rule.")
@click.option("--output-format", type=click.Choice(("text", "json", "html")), default="text", show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it there; in a folder, index.html."
)
def command(rule: str | None, every: bool, output_format: str, output: Path | None) -> None:
    """The page of a rule: what it does, why, an example and what to use instead. Of a family, such as MEM, a line for
    each of its rules.

    With --all --output-format html: one HTML file with every page, which can be searched and needs nothing else.
    """
    if (rule is None) != every:
        raise click.UsageError("name one rule, or say --all")
    try:
        Configuration().for_folder(Path.cwd())  # which loads the plugins that the settings name
        pages = _pages(rule) if rule is not None else all_pages()
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    one = pages[0] if len(pages) == 1 else None
    if one is not None and output_format == "text" and output is None and use_color("auto"):
        _show(one)
        return
    text = _rendered(pages, output_format)
    if output is None:
        click.echo(text, nl=False)
        return
    output = output / "index.html" if output.is_dir() else output
    try:
        replace_file(output, text.encode())
    except OSError as error:
        raise click.UsageError(f"{output}: the output cannot be written: {error.strerror}") from error


def _pages(rule: str) -> list[Page]:
    """That of the rule which has this code or name, or those of the family. Raises ConfigError."""
    family = [one for one in all_pages() if one.code.rstrip("0123456789") == rule.upper()]
    return family or [page(find_code(rule))]


def _rendered(pages: list[Page], output_format: str) -> str:
    one = pages[0] if len(pages) == 1 else None
    if output_format == "html":
        from torchlint.site import render

        return render(pages)
    if output_format == "json":
        return json.dumps(_entry(one) if one is not None else [_entry(page) for page in pages], indent=2) + "\n"
    return markdown(one) + "\n" if one is not None else "".join(map(_line, pages))


def _line(page: Page) -> str:
    fix = "fix" if page.has_fix else ""
    return f"{page.code:<8} {page.severity:<8} {fix:<4} {page.name:<34} {page.summary}".rstrip() + "\n"


def _entry(page: Page) -> dict[str, Any]:
    entry = dataclasses.asdict(page)
    entry["page"] = entry.pop("text")
    return entry


def _show(page: Page) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(markdown(page)))
