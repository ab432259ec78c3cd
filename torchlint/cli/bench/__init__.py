"""`torchlint bench`: measures of this machine, and of a model or loader that the user names."""

from __future__ import annotations

import click

from torchlint.cli import LazyGroup


class _Tools(LazyGroup):
    package = __name__


@click.group("bench", cls=_Tools, short_help="Measure memory, transfers, precision, loaders and batch sizes.")
def command() -> None:
    """Measure this machine, or your model and loader on it. Needs torch.

    A SUBJECT is package.module:callable, or path/to/file.py:callable. Called without arguments, or with batch_size, it
    returns `model, data` or `model, data, loss`: data is a batch or a DataLoader, and loss(model, batch) a scalar. A
    callable that returns the model alone, such as a class, needs --input.
    """
