"""Options of the commands that run the user's program, and what they have in common."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from torchlint.source import Source

Function = TypeVar("Function", bound=Callable[..., Any])
Option = Callable[[Any], Any]


def options(*wanted: Option) -> Callable[[Function], Function]:
    """The given click options, in this order."""

    def decorate(function: Function) -> Function:
        for option in reversed(wanted):
            function = option(function)
        return function

    return decorate


def steps(default: int) -> Option:
    return click.option(
        "--steps",
        type=click.IntRange(min=2),
        default=default,
        show_default=True,
        help="Stop the program after so many.",
    )


warmup = click.option(
    "--warmup", type=click.IntRange(min=1), default=5, show_default=True, help="First steps to leave out."
)
timeout = click.option(
    "--timeout", type=click.FloatRange(min=1), default=600.0, show_default=True, help="Seconds for a single run."
)
seed = click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the random numbers, unless the program sets it."
)
python = click.option("--python", metavar="PATH", help="The interpreter to use in place of the command's `python`.")
root = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The project's folder, which is copied; the working directory unless given.",
)


def formats(*names: str) -> Option:
    return click.option("--output-format", type=click.Choice(names), default=names[0], show_default=True)


output_format = formats("text", "json")
keep = click.option("--keep", is_flag=True, help="Keep the copy and the logs of the last run.")
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")


def prepare() -> None:
    """A polite kill ends like Ctrl-C: programs stopped, copies removed. Raises UsageError on other systems."""
    if os.name != "posix":
        raise click.UsageError("running a program under the probe needs a POSIX system")
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def place(root: Path) -> tuple[Path, Path]:
    """The project's folder, and where in it the command starts."""
    root, here = root.resolve(), Path.cwd().resolve()
    if not here.is_relative_to(root):
        raise click.UsageError(f"--root {root} does not contain the working directory")
    return root, here.relative_to(root)


def files_above(root: Path) -> str | None:
    """What to say where a program fails and the copy has only a folder of the project."""
    from torchlint.files.project_files import ProjectFiles

    project = Path(ProjectFiles().root(str(root / "program.py")))
    if not root.is_relative_to(project) or project == root:
        return None
    above = os.path.relpath(project, Path.cwd().resolve())
    return f"the copy holds {root.name} and nothing above it; `--root {above}` takes all of the project along"


def programs(words: Sequence[str], root: Path, folder: Path) -> dict[str, bytes]:
    """What Python is to run in place of the notebooks that a command names, by their path from the root.

    Raises UsageError where one is no notebook.
    """
    from torchlint.source import Source, UnreadableSourceError

    paths = [(root / folder / word).resolve() for word in words if word.endswith(".ipynb")]
    try:
        inside = [path for path in paths if path.is_relative_to(root) and path.is_file()]
        return {path.relative_to(root).as_posix(): program(Source.read(path)) for path in inside}
    except UnreadableSourceError as error:
        raise click.UsageError(str(error)) from error


def program(source: Source) -> bytes:
    """The file itself, or the code of a notebook's cells."""
    return source.text.encode() if source.is_notebook else source.data


def say(given: Mapping[str, Any]) -> Callable[[str], None]:
    """Where progress goes."""
    return (lambda message: None) if given["quiet"] else (lambda message: click.echo(f"torchlint: {message}", err=True))
