"""`torchlint check`: find, and with `--fix` rewrite."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import click

from torchlint.atomic import replace_file
from torchlint.cache import FOLDER
from torchlint.cli import command_names, forget_stdout
from torchlint.config import ConfigError, Selection, Settings, check_selectors, nearest
from torchlint.diagnostics import UNREADABLE_FILE, is_failure
from torchlint.discovery import Discovery, Target, discover, is_excluded
from torchlint.engine import diagnose, is_worth_linting
from torchlint.finding import Finding, Severity
from torchlint.narrowing import Baselines
from torchlint.output import FORMATS, Outcome, count, render, statistics, summary
from torchlint.progress import Progress
from torchlint.runner import Options, Result, Task, fixed_result, process, run, within
from torchlint.settings_file import CommandLine, Configuration, load_plugins
from torchlint.source import Source
from torchlint.terminal import use_color
from torchlint.writing import WriteError, write

CLEAN, FOUND, FAILED = 0, 1, 2
_QUESTION = "Fix it? yes, no, all of this rule, don't ask of this rule again, quit"


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
        from torchlint.changed_files import since, staged

        return staged(narrowed) if self.diff_base is None else since(narrowed, self.diff_base)

    @property
    def formats(self) -> set[str]:
        return {output_format for output_format, _ in self.outputs}

    def say(self, message: str) -> None:
        if not self.quiet:
            click.echo(message, err=True)


def _per_file_ignore(entry: str) -> tuple[str, tuple[str, ...]]:
    pattern, colon, code = entry.rpartition(":")
    if not colon or not pattern:
        raise ConfigError(f"--per-file-ignores: `{entry}` is not of the form GLOB:RULE")
    return pattern, check_selectors((code,), "--per-file-ignores")


def _split(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _list_option(name: str, help: str, metavar: str = "RULES") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(name, multiple=True, callback=_split, metavar=metavar, help=help)


_FILE = click.Path(path_type=Path, dir_okay=False)


def _outputs(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[tuple[str, Path | None], ...]:
    return tuple(map(_output, values))


def _output(value: str) -> tuple[str, Path | None]:
    """A format, and the file that it goes to, None for stdout."""
    output_format, equals, file = value.partition("=")
    if output_format not in FORMATS:
        raise click.BadParameter(f"no format `{output_format}`{nearest(output_format, FORMATS)}")
    if equals and not file:
        raise click.BadParameter(f"`{value}` names no file")
    return output_format, Path(file) if equals else None


def _formats(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete)]


class _Command(click.Command):
    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """A bare --add-ignore gives no reason, and never takes the path that follows for one."""
        bare, given = "--add-ignore", args[: args.index("--")] if "--" in args else args
        return super().parse_args(context, [f"{a}=" if a == bare else a for a in given] + args[len(given) :])


@click.command("check", cls=_Command, short_help="Find, and with --fix rewrite.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--fix", is_flag=True, help="Apply safe fixes.")
@click.option(
    "--unsafe-fixes/--no-unsafe-fixes", default=None, help="Count unsafe fixes in: with --fix, apply them too."
)
@click.option("--diff", is_flag=True, help="Write what --fix would change to stdout; exit 1 if there is anything.")
@_list_option("--select", "Only these rules: codes, prefixes, families or names, with commas between.")
@_list_option("--extend-select", "These rules besides the selected ones.")
@_list_option("--ignore", "Not these rules.")
@_list_option("--per-file-ignores", "Not these rules in these files.", "GLOB:RULE")
@click.option("--statistics", is_flag=True, help="Print how often each rule was found, not the findings.")
@click.option(
    "--output-format",
    "outputs",
    multiple=True,
    callback=_outputs,
    shell_complete=_formats,
    default=("full",),
    metavar="FORMAT[=FILE]",
    help=f"One of {', '.join(FORMATS)}; full unless given. Several at once, all but one with a file.",
)
@click.option("--output-file", type=_FILE, metavar="FILE", help="Write the findings there and not to stdout.")
@click.option("--jobs", "-j", type=click.IntRange(min=0), default=0, help="Worker processes; 0 is one per processor.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write .torchlint_cache.")
@click.option("--isolated", is_flag=True, help="Read no settings file.")
@click.option(
    "--stdin-filename", type=click.Path(path_type=Path), metavar="PATH", help="What the text on stdin is called."
)
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit 1 where something was fixed, even if nothing is left.")
@click.option("--force-exclude", is_flag=True, help="Leave excluded files out even if they are named.")
@click.option("--fix-only", is_flag=True, help="Apply safe fixes; say nothing of what is left, nor exit 1 for it.")
@click.option("--interactive", is_flag=True, help="Ask for each fix, safe or not, whether to make it.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes; needs torchlint[watch].")
@click.option(
    "--add-ignore",
    metavar="[=REASON]",
    help="Suppress everything that is found, by comments with the reason; write the equals sign.",
)
@click.option("--show-suppressed", is_flag=True, help="Print what comments or the baseline suppress, too.")
@click.option("--baseline", type=_FILE, metavar="FILE", help="Leave out the findings that stand in this file.")
@click.option("--no-baseline", is_flag=True, help="Leave no finding out for the baseline that the settings name.")
@click.option("--diff-base", metavar="REF", help="Only lines that have changed since HEAD left this commit or branch.")
@click.option("--staged", is_flag=True, help="Only lines that the next commit changes, as it will hold them.")
@click.option(
    "--error-on", type=click.Choice([s.value for s in Severity]), help="Exit 1 for this severity and worse ones only."
)
@click.option("--timing", is_flag=True, help="Say on stderr how long each rule took; nothing comes from the cache.")
@click.option("--config", type=_FILE, metavar="FILE", help="Take the settings from this file.")
@click.option(
    "--plugin",
    "plugins",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Run the rules of this file or folder too: its code is executed.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print findings and nothing else.")
@click.option("--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True)
def command(**options: Any) -> int:
    """Find what wastes a GPU or trains wrong in PATHS (files and folders, the working directory unless given; - is
    stdin).

    Exit code 0: nothing left, 1: findings left, 2: wrong usage or a failure.
    """
    request = Request(**options)
    _check_combination(request)
    request = replace(request, outputs=_with_file(request.outputs, request.output_file))
    try:
        if request.watch:
            return _watch(request)
        configuration = request.configuration()
        return _check_stdin(request, configuration) if request.is_stdin else _check_paths(request, configuration)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _watch(request: Request) -> int:
    """Until interrupted. A mistake in the settings is said, and the next change tried."""
    from torchlint.watching import changes

    for _ in changes(request.paths or (Path(),)):
        try:
            _check_paths(request, request.configuration())
        except (ConfigError, click.UsageError) as error:
            click.echo(f"Error: {error}", err=True)
        request.say("Waiting for changes; Ctrl-C ends.")
    return CLEAN


def _check_combination(request: Request) -> None:
    for names in (("diff_base", "staged"), ("baseline", "no_baseline")):
        if sum(bool(getattr(request, name)) for name in names) > 1:
            raise click.UsageError(
                " and ".join(f"--{name.replace('_', '-')}" for name in names) + " exclude each other"
            )
    if request.interactive and (request.fix or request.fix_only or request.diff or request.is_stdin):
        raise click.UsageError("--interactive goes with no other way to fix, nor with stdin")
    if request.watch and (request.diff or request.is_stdin or request.interactive):
        raise click.UsageError("--watch goes neither with --diff or --interactive nor with stdin")
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


def _check_paths(request: Request, configuration: Configuration) -> int:
    found = discover(request.paths or (Path(),), configuration)
    for path in found.missing:
        hint = nearest(str(path), command_names())
        click.echo(
            f"torchlint: {path}: no such file or folder{hint and hint.replace('mean', 'mean the command')}", err=True
        )
    baselines = Baselines()
    targets = request.narrowed(found.targets, baselines)
    if not targets and not found.problems:
        if not found.missing:
            request.say("No Python file to check." if not found.targets else "No line to check has changed.")
        _print(request, Outcome((), 0))
        return FAILED if found.missing else CLEAN
    cache = None if request.no_cache or request.timing else configuration.for_folder(Path.cwd()).root / FOLDER
    options = Options(request.jobs, request.fixes, cache, request.show_suppressed or "sarif" in request.formats)
    with Progress(enabled=not request.quiet) as progress:
        results = [*_problems(found), *run(targets, options, progress.update)]
    if request.timing:
        from torchlint.output.timing import table

        click.echo(table(result.seconds for result in results), err=True, nl=False)
    for sentence in baselines.stale(targets, [finding for result in results for finding in result.suppressed]):
        request.say(f"torchlint: {sentence}")
    unsafe = any(target.settings.unsafe_fixes for target in targets)
    if request.diff:
        code = _print_diff(request, results)
    else:
        if request.interactive:
            results = _write_all(_interviewed(results, targets, request), targets)
        elif request.fixes:
            results = _write_all(results, targets)
        elif request.add_ignore is not None:
            results = [_suppressed(result, request.add_ignore) for result in results]
        least = {target.path: target.settings.error_on for target in targets}
        outcome = Outcome(results, len(targets), unsafe, _applied(results), request.show_suppressed)
        code = _report(request, outcome, least)
    return FAILED if found.missing else code


def _problems(found: Discovery) -> list[Result]:
    return [
        Result(path, (diagnose(UNREADABLE_FILE, f"the path cannot be read: {what}", path),))
        for path, what in found.problems
    ]


def _applied(results: Sequence[Result]) -> int:
    return sum(len(result.fixed.applied) for result in results if result.fixed is not None)


def _write_all(results: Sequence[Result], targets: Sequence[Target]) -> list[Result]:
    """The results once their fixes are in the files; where they cannot be, what was found before them."""
    fixed = {result.path: result.fixed for result in results if result.fixed is not None}
    staged = {target.path for target in targets if target.is_staged}
    problems: dict[Path, str] = {}
    for group in {file.together | {path} for path, file in fixed.items()}:
        try:
            if any(path in staged for path in group):
                raise WriteError("there are changes that are not staged")
            write(*(fixed[path] for path in sorted(group)))
        except WriteError as error:
            what = "the file is as it was" if len(group) == 1 else "its files are as they were"
            problems |= dict.fromkeys(group, f"the fixes cannot be written: {error}; {what}")
    settings = {target.path: target.settings for target in targets}
    return [
        _unwritten(result, problems[result.path], settings) if result.path in problems else result for result in results
    ]


def _unwritten(result: Result, message: str, settings: Mapping[Path, Settings]) -> Result:
    assert result.fixed is not None
    before = process(Task(result.path, result.fixed.before.data, settings[result.path]))
    problem = diagnose(UNREADABLE_FILE, message, result.path)
    found = replace(before, findings=(problem, *before.findings))
    return within(found, {os.path.abspath(path): path for path in settings})


def _interviewed(results: Sequence[Result], targets: Sequence[Target], request: Request) -> list[Result]:
    """The results once the user has said which fixes to make."""
    from torchlint.interactive import Answer, Interview
    from torchlint.output.full import question
    from torchlint.semantics.project import Project

    color = use_color(request.color, sys.stderr)

    def ask(finding: Finding, source: Source) -> Answer:
        click.echo(question(finding, source, color), err=True)
        try:
            return Answer(click.prompt(_QUESTION, type=click.Choice([a.value for a in Answer]), err=True))
        except click.Abort:
            return Answer.QUIT

    interview = Interview(ask)
    by_path = {target.path: target for target in targets}
    project = Project()
    return [
        fixed_result(
            interview.fix(result.source, by_path[result.path].settings, project), by_path[result.path].settings, project
        )
        if result.source is not None and result.findings
        else result
        for result in results
    ]


def _suppressed(result: Result, reason: str) -> Result:
    """The result once comments suppress its findings in the file."""
    from torchlint.add_ignore import add_ignores

    if result.source is None or not result.findings:
        return result
    try:
        commented = add_ignores(result.source, result.findings, reason)
        if commented.changed:
            write(commented)
    except (UnicodeEncodeError, WriteError) as error:
        message = f"the comments cannot be written: {error}; the file is as it was"
        return replace(result, findings=(diagnose(UNREADABLE_FILE, message, result.path), *result.findings))
    return replace(result, findings=commented.remaining, fixed=commented)


def _exit_code(request: Request, outcome: Outcome, least: Mapping[Path, Severity]) -> int:
    """`least` is the severity from which on a finding counts, by the path of its file."""
    found = [
        (finding, least.get(result.path, Severity.INFO)) for result in outcome.results for finding in result.findings
    ]
    codes = [finding.code for finding, severity in found if finding.severity.reaches(severity)]
    if any(map(is_failure, codes)):
        return FAILED
    if codes and not request.fix_only:
        return FOUND
    return FOUND if outcome.fixed and request.exit_non_zero_on_fix else CLEAN


def _report(request: Request, outcome: Outcome, least: Mapping[Path, Severity]) -> int:
    shown = outcome.of_failures() if request.fix_only else outcome
    _print(request, shown)
    request.say(_summary(request, shown))
    return _exit_code(request, outcome, least)


def _summary(request: Request, outcome: Outcome) -> str:
    if request.fix_only and not any(outcome.findings()):
        return f"Fixed {count(outcome.fixed, 'finding')}."
    return summary(outcome, "Fixed" if request.add_ignore is None else "Suppressed")


def _print(request: Request, outcome: Outcome, stream: IO[str] | None = None) -> None:
    """Writes every output that was asked for. `stream` stands for stdout where that has to carry something else."""
    for output_format, file in request.outputs:
        color = file is None and use_color(request.color, stream or sys.stdout)
        if request.statistics:
            text = statistics(outcome, output_format == "json")
        else:
            text = render(output_format, outcome, color)
        if file is not None:
            _write_file(file, text)
        elif stream is None:
            _write_out(text)
        else:
            stream.write(text)
    if "github" in request.formats:
        from torchlint.output.github import append_to_step_summary

        append_to_step_summary(outcome)


def _write_file(file: Path, text: str) -> None:
    try:
        replace_file(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise click.UsageError(f"{file}: the output cannot be written: {error.strerror}") from error


def _write_out(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()


def _print_diff(request: Request, results: Sequence[Result]) -> int:
    from torchlint.output.changes import unified_diff

    fixed = [result.fixed for result in results if result.fixed is not None]
    _write_out("".join(map(unified_diff, fixed)))
    failures = [finding for result in results for finding in result.findings if is_failure(finding.code)]
    for finding in failures:
        click.echo(f"{finding.path}: {finding.code} {finding.message}", err=True)
    request.say(f"Would fix {count(_applied(results), 'finding')} in {count(len(fixed), 'file')}.")
    return FAILED if failures else FOUND if fixed else CLEAN


def _check_stdin(request: Request, configuration: Configuration) -> int:
    data = sys.stdin.buffer.read()
    path = request.stdin_filename or Path("-")
    baselines = Baselines()
    settings = configuration.for_path(path)
    targets = request.narrowed([Target(path, settings, data)], baselines)
    excluded = settings.force_exclude and is_excluded(path, settings)
    if excluded or not targets or not is_worth_linting(data):
        result = Result(path)
    else:
        task = Task(path, data, targets[0].settings, settings.unsafe_fixes if request.fixes else None)
        result = within(process(task), {os.path.abspath(path): path})
    outcome = Outcome([result], 1, settings.unsafe_fixes, _applied([result]), request.show_suppressed)
    least = {path: settings.error_on}
    if request.diff:
        return _print_diff(request, [result])
    if not request.fixes:
        return _report(request, outcome, least)
    sys.stdout.buffer.write(data if result.fixed is None else result.fixed.source.data)
    sys.stdout.buffer.flush()
    shown = outcome.of_failures() if request.fix_only else outcome
    _print(request, shown, sys.stderr)
    request.say(_summary(request, shown))
    return _exit_code(request, outcome, least)
