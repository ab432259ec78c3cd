"""A progress bar on stderr, for work that takes longer than a second at a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_PATIENCE = 1.0
_INTERVAL = 0.1
_CELLS = 30


class Progress:
    """Draws nothing unless stderr is a terminal, and takes the bar away at the end."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled and sys.stderr.isatty()
        self._next = time.monotonic() + _PATIENCE
        self._drawn = False

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._enabled or now < self._next:
            return
        full = _CELLS * done // max(total, 1)
        sys.stderr.write(f"\r{'━' * full}{'╌' * (_CELLS - full)} {done}/{total} files")
        sys.stderr.flush()
        self._next, self._drawn = now + _INTERVAL, True

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
