"""Waiting until a file changes that a run depends on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torchlint.config import ConfigError
from torchlint.extras import how_to_install
from torchlint.files.discovery import SUFFIXES

_TICK = 200  # milliseconds


def changes(paths: Sequence[Path]) -> Iterator[object]:
    """One item once nothing that happens is missed any more, then one whenever Python files, notebooks or settings
    below the paths have changed, until interrupted. Raises ConfigError without watchfiles."""
    try:
        from watchfiles import DefaultFilter, watch
    except ImportError as error:
        raise ConfigError(f"--watch needs watchfiles: {how_to_install('watch')}") from error

    usual: Any = DefaultFilter()

    def is_relevant(change: object, path: str) -> bool:
        return path.endswith((*SUFFIXES, ".toml")) and bool(usual(change, path))

    waiting = watch(*paths, watch_filter=is_relevant, rust_timeout=_TICK, yield_on_timeout=True)
    first = True
    for found in waiting:
        if found or first:
            yield found
        first = False
