"""`torchlint rule`: a rule's page in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from torchlint.config import ConfigError, find_code
from torchlint.diagnostics import DIAGNOSTICS
from torchlint.rule import all_rules, has_fixer
from torchlint.settings_file import Configuration
from torchlint.terminal import use_color


@click.command("rule", short_help="Show the page of a rule.")
@click.argument("rule", required=False, metavar="CODE|NAME")
@click.option("--all", "every", is_flag=True, help="Every rule.")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", show_default=True)
def command(rule: str | None, every: bool, output_format: str) -> None:
    """The page of a rule: what it does, why, an example and what to use instead."""
    if (rule is None) != every:
        raise click.UsageError("name one rule, or say --all")
    try:
        Configuration().for_folder(Path.cwd())  # which loads the plugins that the settings name
        codes = [find_code(rule)] if rule is not None else [*all_rules(), *DIAGNOSTICS]
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    entries = [_entry(code) for code in codes]
    if output_format == "json":
        click.echo(json.dumps(entries if every else entries[0], indent=2))
    elif every:
        for entry in entries:
            fix = "fix" if entry["has_fix"] else ""
            click.echo(
                f"{entry['code']:<8} {entry['severity']:<8} {fix:<4} {entry['name']:<32} {entry['summary']}".rstrip()
            )
    else:
        _show(entries[0])


def _entry(code: str) -> dict[str, Any]:
    if code in DIAGNOSTICS:
        diagnostic = DIAGNOSTICS[code]
        name, page, severity = diagnostic.name, diagnostic.page, diagnostic.severity
        more: dict[str, Any] = {"has_fix": code == "LINT03", "since": "0.1.0", "needs_torch": None, "triggers": []}
    else:
        rule = all_rules()[code]
        name, page, severity = rule.name, rule.page(), rule.default_severity()
        more = {"has_fix": has_fixer(code), "since": rule.since, "needs_torch": rule.needs_torch or None}
        more["triggers"] = list(rule.triggers)
    about = {"code": code, "name": name, "family": code.rstrip("0123456789"), "severity": severity.value}
    return {**about, "summary": page.partition("\n")[0], **more, "page": page}


def _show(entry: dict[str, Any]) -> None:
    fix = ", fixable" if entry["has_fix"] else ""
    heading = f"# {entry['code']} {entry['name']}\n\n{entry['severity']}{fix}, since {entry['since']}\n\n"
    if not use_color("auto"):
        click.echo(heading + entry["page"])
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(heading + entry["page"]))
