"""Options, errors and output that the tools have in common."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from torchlint.cli import FAILED
from torchlint.cli import _running as running
from torchlint.cli._running import Function
from torchlint.extras import how_to_install

if TYPE_CHECKING:
    import torch

    from torchlint.runtime_check.toolkit.step import Trainer
    from torchlint.runtime_check.toolkit.subject import Subject

SCHEMA = "torchlint.bench/1"


class Failure(click.ClickException):
    """What the user can put right, in one sentence."""

    exit_code = FAILED


def options(*wanted: running.Option) -> Callable[[Function], Function]:
    """The given click options, and those of every tool, in this order."""
    return running.options(*wanted, running.output_format, running.quiet)


device = click.option("--device", metavar="DEVICE", help="cpu, cuda or cuda:N; the GPU unless there is none.")
inputs = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="SHAPE",
    help='Give the model random data, as in "N,3,224,224" or "N,128:int64"; N is the batch size. Once per argument.',
)
batch_size = click.option("--batch-size", type=click.IntRange(min=1), help="Passed to the SUBJECT, and N of --input.")
optimizer = click.option(
    "--optimizer",
    default="AdamW",
    show_default=True,
    metavar="NAME",
    help="A class of torch.optim, or package.module:callable that takes the parameters.",
)
learning_rate = click.option("--lr", type=float, default=1e-3, show_default=True, help="Of a class of torch.optim.")
training = (inputs, batch_size, device, optimizer, learning_rate)


def needs_torch(function: Function) -> Function:
    """Prints what the function returns, text and exit code; what the user's own code prints goes to stderr. Says how to
    install torch where it is missing, and turns what the user can put right into one sentence."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if importlib.util.find_spec("torch") is None:
            raise Failure(f"this needs torch, which is not installed here: {how_to_install('runtime')}")
        from torchlint.runtime_check.toolkit.errors import ToolError
        from torchlint.runtime_check.toolkit.subject import is_out_of_memory

        try:
            with contextlib.redirect_stdout(sys.stderr):
                text, code = function(*args, **kwargs)
        except ToolError as error:
            raise Failure(str(error)) from error
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise Failure("out of memory: try a smaller --batch-size") from error
        click.echo(text)
        return code

    return checked  # type: ignore[return-value]


def subject_of(name: str, given: dict[str, Any]) -> Subject:
    """The model and data that a SUBJECT names."""
    from torchlint.runtime_check.toolkit.subject import build

    return build(name, given["inputs"], given["batch_size"])


def trainer_of(subject: Subject, device: torch.device, given: dict[str, Any]) -> Trainer:
    """What makes the training steps of a subject on a device."""
    from torchlint.runtime_check.toolkit.step import optimizer_maker, trainer

    make = optimizer_maker(given["optimizer"], given["lr"])
    return trainer(subject.trained(device), subject.loss, make, device)


def shown(
    tool: str, result: Any, lines: Iterable[str], given: dict[str, Any], device: torch.device | None
) -> tuple[str, int]:
    """The report in the format that was asked for, and exit code 0."""
    if given["output_format"] == "text":
        return "\n".join(line.rstrip() for line in lines), 0
    import torch

    from torchlint.runtime_check.plain import plain
    from torchlint.runtime_check.toolkit.device import describe

    about = {"schema": SCHEMA, "tool": tool, "date": date.today().isoformat(), "torch": torch.__version__}
    if device is not None:
        about.update(device=str(device), device_name=describe(device))
    return json.dumps({**about, "result": plain(asdict(result))}, indent=2), 0


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Iterable[str]:
    """Aligned columns: the first `left` to the left, the others to the right."""
    lines = [heading, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heading))]
    for line in lines:
        cells = [
            cell.ljust(width) if at < left else cell.rjust(width) for at, (cell, width) in enumerate(zip(line, widths))
        ]
        yield "  " + "  ".join(cells)


def mb(size: float) -> str:
    """Bytes as MB."""
    return f"{size / 2**20:.2f}"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it; `-` where there is none."""
    if value is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


def numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...]:
    """A click callback for a list such as "1,10,100"."""
    try:
        found = tuple(int(part) for part in (value or "").split(",") if part.strip())
    except ValueError as error:
        raise click.BadParameter(f"{value} is no list of whole numbers such as 1,10,100") from error
    if any(number < 0 for number in found):
        raise click.BadParameter("numbers below zero make no sense here")
    return found
