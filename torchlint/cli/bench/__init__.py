"""`torchlint bench`: measures of this machine, and of a model or loader that the user names."""

from __future__ import annotations

import re

import click

from torchlint.cli import LazyGroup, command_names

_CODES = re.compile(r"[A-Z]+\d*(,[A-Z]+\d*)*")


class _Tools(LazyGroup):
    package = __name__

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """What is no tool, and is written as codes of rules are, is for `rules`."""
        if args and args[0] not in command_names(self.package) and _CODES.fullmatch(args[0]):
            args = ["rules", *args]
        return super().parse_args(context, args)


@click.group("bench", cls=_Tools, short_help="Measure fixes, memory, transfers, precision, loaders and batch sizes.")
def command() -> None:
    """Measure this machine, your model and loader on it, or what the fixes of rules gain on it: `torchlint bench RULES`
    is `torchlint bench rules RULES`. Needs torch.

    A SUBJECT is package.module:callable, or path/to/file.py:callable. Called without arguments, or with batch_size, it
    returns `model, data` or `model, data, loss`: data is a batch or a DataLoader, and loss(model, batch) a scalar. A
    callable that returns the model alone, such as a class, needs --input.
    """
