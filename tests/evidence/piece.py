"""A runnable piece of a public repository, and the driver of ours that runs it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.evidence import pieces

Values = dict[str, Any]
"""What a run computed, by name: tensors, arrays, numbers, texts, and containers of these."""


@dataclass(frozen=True)
class Piece:
    """`run` takes the root of a checkout, runs the piece there for a few steps, and gives what it computed."""

    repository: str
    commit: str
    path: str
    what: str
    run: Callable[[Path], Values]
    name: str = ""
    lint: str = ""  # the part of the repository that is fixed, where all of it would take long

    @property
    def checkout(self) -> str:
        return self.repository.replace("/", "__")


def find(name: str) -> Piece:
    return replace(importlib.import_module(f"{pieces.__name__}.{name}").PIECE, name=name)


def names() -> Iterator[str]:
    return (module.name for module in pkgutil.iter_modules(pieces.__path__))
