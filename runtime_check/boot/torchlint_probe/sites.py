"""Seconds by call site of the program: each line together with the lines that called it.

A tracer that is called at every line of the program knows at any time which site is running; whatever torch and other
libraries do below it is charged to it. The sites form a tree, whose root is what runs outside of the program's files.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .lines import Lines

if TYPE_CHECKING:
    from .settings import Settings

ROOT = 0


class Sites(Lines):
    """Of the thread that imports torch. `parents`, `places` and `seconds` are by number of the site; `running` is the
    one that runs now."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.parents = [ROOT]
        self.places: list[tuple[str, int]] = [("", 0)]
        self.seconds = [0.0]
        self.backward_seconds = 0.0
        self.running = ROOT
        self.numbers: dict[tuple[int, str, int], int] = {}
        self.first = settings.warmup
        self.last = settings.warmup + settings.timed
        self.timing = True  # should no step ever end, it is the program that is timed
        self.since = time.perf_counter()

    def watch(self) -> None:
        """Raises RuntimeError in a program that is traced already."""
        if sys.gettrace() is not None:
            raise RuntimeError("torchlint profile cannot trace a program that a debugger or a coverage tool traces")
        self.trace(threads=super()._called)
        os.register_at_fork(after_in_child=lambda: sys.settrace(None))

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not self._is_mine(file):
            return None
        caller = self.running
        self._enter(caller, file, frame.f_lineno)

        def traced(frame: Any, event: str, argument: Any) -> Any:
            if event == "return":
                self._charge(caller)
            elif event == "line":
                self._enter(caller, file, frame.f_lineno)
            return traced

        return traced

    def _enter(self, caller: int, file: str, line: int) -> None:
        key = (caller, file, line)
        site = self.numbers.get(key)
        if site is None:
            site = self.numbers[key] = len(self.parents)
            self.parents.append(caller)
            self.places.append((file, line))
            self.seconds.append(0.0)
        self._charge(site)

    def _charge(self, following: int) -> None:
        if self.timing:
            self.seconds[self.running] += time.perf_counter() - self.since
        self.running = following
        self.since = time.perf_counter()

    @contextlib.contextmanager
    def in_backward(self, tensors: Any) -> Iterator[None]:
        """Its seconds are kept apart from those of the line that asks for it."""
        self._charge(self.running)
        begin, timing, self.timing = self.since, self.timing, False
        try:
            yield
        finally:
            self.timing, self.since = timing, time.perf_counter()
            if timing:
                self.backward_seconds += self.since - begin

    def step(self, number: int) -> dict[str, float]:
        self._charge(self.running)
        if number == self.first:
            self.seconds = [0.0] * len(self.seconds)
            self.backward_seconds = 0.0
        self.timing = self.first <= number < self.last
        return {}

    def result(self) -> dict[str, Any]:
        self._charge(self.running)
        own = {file for file, _ in self.places[1:]}
        names = {file: os.path.abspath(file)[len(self.tree) :] for file in own} | {"": ""}
        for file, line in self.places[1:]:
            self.seen.setdefault(file, set()).add(line)
        sites = [
            {"parent": parent, "path": names[file], "line": line, "seconds": seconds}
            for parent, (file, line), seconds in zip(self.parents, self.places, self.seconds)
        ]
        return {**super().result(), "sites": sites, "backward_seconds": self.backward_seconds}
