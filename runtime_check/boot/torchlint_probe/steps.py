"""Where one step ends and the next begins, and when to stop."""

from __future__ import annotations

import json
import os
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .settings import Settings

KINDS = ("program", "loader", "optimizer")
PATIENCE = 10  # batches before the first optimizer step, in units of `steps`, until a program counts as inference


class Stop(SystemExit):
    """Exit code 0; `with` and `finally` of the program still run."""

    def __init__(self) -> None:
        super().__init__(0)


class Instrument(Protocol):
    def step(self, number: int) -> dict[str, float]:
        """Figures of the step that just ended; the next one starts when this returns."""

    def result(self) -> dict[str, Any]: ...


class Recorder:
    """Collects the figures of each step and writes them once, at step `settings.steps` or at the program's end.

    A better kind of boundary (an optimizer step after loader batches) starts the record anew.
    """

    def __init__(self, settings: Settings, instruments: list[Instrument]) -> None:
        self.settings = settings
        self.instruments = instruments
        self.kind = "program" if settings.boundary == "auto" else settings.boundary
        self.steps: list[dict[str, float]] = []
        self.process = os.getpid()
        self.trains = False
        self.batches = 0
        self.finished = False
        self.stops = 0
        self.primary: Callable[[], Any] = lambda: None

    def boundary(self, kind: str, optimizer: Any = None) -> None:
        if os.getpid() != self.process or not self._is_primary(optimizer):
            return
        if kind != self.kind:
            if self.settings.boundary != "auto" or KINDS.index(kind) < KINDS.index(self.kind):
                return
            self.kind, self.steps, self.finished = kind, [], False
        if not self.finished:
            self._close()
        if self.finished and self._may_stop():
            self._stop()

    def _is_primary(self, optimizer: Any) -> bool:
        """With several optimizers, as in a GAN, a step ends with the one that stepped first."""
        if optimizer is None:
            return True
        if self.primary() is None:
            self.primary = weakref.ref(optimizer)
        return self.primary() is optimizer

    def _close(self) -> None:
        number = len(self.steps) + 1
        figures: dict[str, float] = {}
        self.steps.append(figures)
        for instrument in self.instruments:
            figures.update(instrument.step(number))
        if number == self.settings.steps:
            self.finish("stop")

    def _may_stop(self) -> bool:
        if self.kind == "optimizer" or self.settings.boundary != "auto":
            return True
        self.batches += 1
        return not self.trains and self.batches > (PATIENCE - 1) * self.settings.steps

    def _stop(self) -> None:
        self.stops += 1
        if self.stops > 3:  # a bare `except:` of the program swallows the exit
            sys.stdout.flush()
            os._exit(0)
        raise Stop

    def at_exit(self) -> None:
        if self.finished or os.getpid() != self.process:
            return
        if self.kind == "program":
            self._close()
        self.finish("exit")

    def finish(self, why: str) -> None:
        self.finished = True
        if not _is_first_rank():
            return
        result: dict[str, Any] = {"why": why, "boundary": self.kind, "steps": self.steps}
        for instrument in self.instruments:
            result.update(instrument.result())
        path = os.path.join(self.settings.results, f"{self.process}.json")
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(result, file)
        os.replace(path + ".part", path)


def _is_first_rank() -> bool:
    """Of several ranks only the first writes; the others stop at the same step."""
    distributed = sys.modules["torch"].distributed
    if distributed.is_available() and distributed.is_initialized():
        return bool(distributed.get_rank() == 0)
    return os.environ.get("RANK", "0") in ("0", "")
