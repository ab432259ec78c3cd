"""The options of `torchlint check`, and what they ask for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from torchlint.config import ConfigError, Selection, check_selectors, nearest
from torchlint.files.discovery import Target
from torchlint.filters.narrowing import Baselines
from torchlint.finding import Severity
from torchlint.output import FORMATS
from torchlint.settings_file import CommandLine, Configuration, load_plugins

_AS_TEXT = (("full", None),)


@dataclass(frozen=True)
class Request:
    """The options of one call."""

    paths: tuple[Path, ...]
    fix: bool
    unsafe_fixes: bool | None
    diff: bool
    select: tuple[str, ...]
    extend_select: tuple[str, ...]
    ignore: tuple[str, ...]
    per_file_ignores: tuple[str, ...]
    statistics: bool
    outputs: tuple[tuple[str, Path | None], ...]
    output_file: Path | None
    jobs: int
    cluster: str | None
    no_cache: bool
    isolated: bool
    stdin_filename: Path | None
    exit_non_zero_on_fix: bool
    fix_only: bool
    interactive: bool
    watch: bool
    add_ignore: str | None
    show_suppressed: bool
    baseline: Path | None
    no_baseline: bool
    diff_base: str | None
    staged: bool
    error_on: str | None
    timing: bool
    force_exclude: bool
    config: Path | None
    plugins: tuple[Path, ...]
    quiet: bool
    color: str

    @property
    def is_stdin(self) -> bool:
        return self.paths == (Path("-"),) or (not self.paths and self.stdin_filename is not None)

    def configuration(self) -> Configuration:
        """Raises ConfigError."""
        plugins = load_plugins(tuple(Path(os.path.abspath(plugin)) for plugin in self.plugins))
        selection = Selection(
            check_selectors(self.select, "--select") or None,
            check_selectors(self.extend_select, "--extend-select"),
            check_selectors(self.ignore, "--ignore"),
        )
        ignores = tuple(_per_file_ignore(entry) for entry in self.per_file_ignores)
        error_on = None if self.error_on is None else Severity(self.error_on)
        options = CommandLine(
            selection,
            ignores,
            self.force_exclude,
            self.unsafe_fixes,
            error_on,
            self.baseline,
            self.no_baseline,
            plugins,
        )
        return Configuration(options, self.config, self.isolated)

    @property
    def fixes(self) -> bool:
        return (self.fix or self.fix_only or self.diff) and self.add_ignore is None

    def narrowed(self, targets: Sequence[Target], baselines: Baselines) -> list[Target]:
        """Raises ConfigError."""
        narrowed = baselines.narrow(targets)
        if self.diff_base is None and not self.staged:
            return narrowed
        from torchlint.files.changed_files import since, staged

        return staged(narrowed) if self.diff_base is None else since(narrowed, self.diff_base)

    @property
    def formats(self) -> set[str]:
        return {output_format for output_format, _ in self.outputs}

    def say(self, message: str) -> None:
        if not self.quiet:
            click.echo(message, err=True)


def requested(**given: Any) -> Request:
    """What the values of the options ask for. Raises click.UsageError where they do not go together."""
    request = Request(**given)
    _check_combination(request)
    return replace(request, outputs=_with_file(request.outputs, request.output_file))


def _check_combination(request: Request) -> None:
    if Path("-") in request.paths and not request.is_stdin:
        raise click.UsageError("- is stdin, which goes with no other path")
    if request.stdin_filename is not None and not request.is_stdin:
        raise click.UsageError("--stdin-filename is for what comes from stdin, and goes with no path but -")
    for names in (("diff_base", "staged"), ("baseline", "no_baseline")):
        if sum(bool(getattr(request, name)) for name in names) > 1:
            raise click.UsageError(
                " and ".join(f"--{name.replace('_', '-')}" for name in names) + " exclude each other"
            )
    if request.interactive and (request.fix or request.fix_only or request.diff or request.is_stdin):
        raise click.UsageError("--interactive goes with no other way to fix, nor with stdin")
    if request.diff and (request.outputs != _AS_TEXT or request.output_file is not None or request.statistics):
        raise click.UsageError(
            "--diff writes a diff, and goes with no --output-format, --output-file or --statistics; json has the same"
            " changes as edits, without it"
        )
    if request.watch and (request.diff or request.is_stdin or request.interactive):
        raise click.UsageError("--watch goes neither with --diff or --interactive nor with stdin")
    if request.watch and (missing := next((path for path in request.paths if not path.exists()), None)) is not None:
        raise click.UsageError(f"--watch: {missing}: no such file or folder")
    if request.timing and (request.fixes or request.is_stdin):
        raise click.UsageError("--timing goes neither with fixes nor with stdin")
    if request.add_ignore is not None:
        if request.fix or request.fix_only or request.diff or request.is_stdin:
            raise click.UsageError("--add-ignore goes neither with fixes nor with stdin")
        if not request.add_ignore.isprintable() or "#" in request.add_ignore:
            raise click.UsageError("--add-ignore: the reason must be one line without `#`")


def _with_file(outputs: Sequence[tuple[str, Path | None]], file: Path | None) -> tuple[tuple[str, Path | None], ...]:
    """The outputs, with `file` for the one that has none."""
    placed = tuple((output_format, own or file) for output_format, own in outputs)
    if len({target for _, target in placed}) < len(placed):
        raise click.UsageError(
            "--output-format: only one format can go to stdout, or to any one file; write FORMAT=FILE"
        )
    if file is not None and all(own is not None for _, own in outputs):
        raise click.UsageError("--output-file: every --output-format has a file of its own")
    return placed


def _per_file_ignore(entry: str) -> tuple[str, tuple[str, ...]]:
    pattern, colon, code = entry.rpartition(":")
    if not colon or not pattern:
        raise ConfigError(f"--per-file-ignores: `{entry}` is not of the form GLOB:RULE")
    return pattern, check_selectors((code,), "--per-file-ignores")


def _split(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    names = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    if values and not names and parameter.name == "select":
        raise click.UsageError("--select: no rule is named")  # all of them would run as if it had not been said
    return names


def list_option(name: str, help: str, metavar: str = "RULES") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that takes several names, with commas between them, and may be given several times."""
    return click.option(name, multiple=True, callback=_split, metavar=metavar, help=help)


def _cluster(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The address of a scheduler."""
    if value is None:
        return None
    engine, _, address = value.partition("=")
    if engine != "dask" or not address:
        raise click.BadParameter(f"`{value}` is not of the form dask=ADDRESS, as in dask=tcp://10.0.0.1:8786")
    return address


_FILE = click.Path(path_type=Path, dir_okay=False)


def _outputs(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[tuple[str, Path | None], ...]:
    return tuple(map(_output, values))


def _output(value: str) -> tuple[str, Path | None]:
    """A format, and the file that it goes to, None for stdout."""
    output_format, equals, file = value.partition("=")
    if output_format not in FORMATS:
        known = nearest(output_format, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise click.BadParameter(f"no format `{output_format}`{known}")
    if equals and not file:
        raise click.BadParameter(f"`{value}` names no file")
    return output_format, Path(file) if equals else None


def _formats(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete)]


class CheckCommand(click.Command):
    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """A bare --add-ignore gives no reason, and never takes the path that follows for one."""
        bare, given = "--add-ignore", args[: args.index("--")] if "--" in args else args
        return super().parse_args(context, [f"{a}=" if a == bare else a for a in given] + args[len(given) :])


_OPTIONS = (
    click.argument("paths", nargs=-1, type=click.Path(path_type=Path)),
    click.option("--fix", is_flag=True, help="Apply safe fixes."),
    click.option(
        "--unsafe-fixes/--no-unsafe-fixes", default=None, help="Count unsafe fixes in: with --fix, apply them too."
    ),
    click.option("--diff", is_flag=True, help="Write what --fix would change to stdout; exit 1 if there is anything."),
    list_option("--select", "Only these rules: codes, prefixes, families or names, with commas between."),
    list_option("--extend-select", "These rules besides the selected ones."),
    list_option("--ignore", "Not these rules."),
    list_option("--per-file-ignores", "Not these rules in these files.", "GLOB:RULE"),
    click.option("--statistics", is_flag=True, help="Print how often each rule was found, not the findings."),
    click.option(
        "--output-format",
        "outputs",
        multiple=True,
        callback=_outputs,
        shell_complete=_formats,
        default=(_AS_TEXT[0][0],),
        metavar="FORMAT[=FILE]",
        help=f"One of {', '.join(FORMATS)}; full unless given. Several at once, all but one with a file.",
    ),
    click.option("--output-file", type=_FILE, metavar="FILE", help="Write the findings there and not to stdout."),
    click.option(
        "--jobs", "-j", type=click.IntRange(min=0), default=0, help="Worker processes; 0 is one per processor."
    ),
    click.option(
        "--executor",
        "cluster",
        callback=_cluster,
        metavar="dask=ADDRESS",
        help="Spread the files over a Dask cluster that sees the same folders; needs torchlint[dask].",
    ),
    click.option("--no-cache", is_flag=True, help="Neither read nor write .torchlint_cache."),
    click.option("--isolated", is_flag=True, help="Read no settings file."),
    click.option(
        "--stdin-filename", type=click.Path(path_type=Path), metavar="PATH", help="What the text on stdin is called."
    ),
    click.option(
        "--exit-non-zero-on-fix", is_flag=True, help="Exit 1 where something was fixed, even if nothing is left."
    ),
    click.option("--force-exclude", is_flag=True, help="Leave excluded files out even if they are named."),
    click.option("--fix-only", is_flag=True, help="Apply safe fixes; say nothing of what is left, nor exit 1 for it."),
    click.option("--interactive", is_flag=True, help="Ask for each fix, safe or not, whether to make it."),
    click.option("--watch", is_flag=True, help="Check again whenever a file changes; needs torchlint[watch]."),
    click.option(
        "--add-ignore",
        metavar="[=REASON]",
        help="Suppress everything that is found, by comments with the reason; write the equals sign.",
    ),
    click.option("--show-suppressed", is_flag=True, help="Print what comments or the baseline suppress, too."),
    click.option("--baseline", type=_FILE, metavar="FILE", help="Leave out the findings that stand in this file."),
    click.option("--no-baseline", is_flag=True, help="Leave no finding out for the baseline that the settings name."),
    click.option(
        "--diff-base", metavar="REF", help="Only lines that have changed since HEAD left this commit or branch."
    ),
    click.option("--staged", is_flag=True, help="Only lines that the next commit changes, as it will hold them."),
    click.option(
        "--error-on",
        type=click.Choice([s.value for s in Severity]),
        help="Exit 1 for this severity and worse ones only.",
    ),
    click.option("--timing", is_flag=True, help="Say on stderr how long each rule took; nothing comes from the cache."),
    click.option("--config", type=_FILE, metavar="FILE", help="Take the settings from this file."),
    click.option(
        "--plugin",
        "plugins",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="PATH",
        help="Run the rules of this file or folder too: its code is executed.",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Print findings and nothing else."),
    click.option("--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True),
)


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command with all options of `check`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
