"""Which lines of the program ran, so that nothing is said of a fix whose lines did not."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .settings import Settings

_TOOLS = (3, 4)  # the identifiers that debuggers, coverage and profilers do not claim


class Lines:
    """By file of the tree. A program that is traced already, by a debugger or for coverage, is left alone."""

    def __init__(self, settings: Settings) -> None:
        self.tree = settings.tree + os.sep
        self.seen: dict[str, set[int]] = {}
        self.mine: dict[str, bool] = {}

    def watch(self) -> None:
        if hasattr(sys, "monitoring"):
            self._monitor(sys.monitoring)
        elif sys.gettrace() is None:
            self.trace(threads=self._called)

    def trace(self, threads: Any) -> None:
        """This thread, whose frames have begun already, and others from their start."""
        importlib.import_module("torch._dynamo")  # an optimizer would, which takes seconds more when traced
        sys.settrace(self._called)
        threading.settrace(threads)
        frames = []
        frame: Any = sys._getframe(1)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        for frame in reversed(frames):
            frame.f_trace = self._called(frame, "call", None)

    def _monitor(self, monitoring: Any) -> None:
        tool = next((tool for tool in _TOOLS if monitoring.get_tool(tool) is None), None)
        if tool is None:
            return
        monitoring.use_tool_id(tool, "torchlint")
        monitoring.register_callback(tool, monitoring.events.LINE, self._line)
        monitoring.set_events(tool, monitoring.events.LINE)

    def _line(self, code: Any, number: int) -> Any:
        if self._is_mine(code.co_filename):
            self.seen.setdefault(code.co_filename, set()).add(number)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined, unused-ignore]

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not self._is_mine(file):
            return None
        add = self.seen.setdefault(file, set()).add
        add(frame.f_lineno)

        def line(frame: Any, event: str, argument: Any) -> Any:
            add(frame.f_lineno)
            return line

        return line

    def _is_mine(self, file: str) -> bool:
        known = self.mine.get(file)
        if known is None:
            known = self.mine[file] = os.path.abspath(file).startswith(self.tree) and "site-packages" not in file
        return known

    def step(self, number: int) -> dict[str, float]:
        return {}

    def result(self) -> dict[str, Any]:
        return {
            "lines": {os.path.abspath(file)[len(self.tree) :]: sorted(seen) for file, seen in self.seen.items() if seen}
        }
