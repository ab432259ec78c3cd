"""The program's side of a game in which several programs are alive and one of them runs: it waits for its turn."""

from __future__ import annotations

import os

ASK, GO = "ask", "go"  # pipes in the folder of results
WAITING, ENDED = b"w", b"e"


class Turns:
    """Where nobody holds the other end of the pipes, or not any more, the program runs on alone."""

    def __init__(self, folder: str, steps: int) -> None:
        self.folder, self.steps = folder, steps
        self.played = 0
        self.pipes: tuple[int, int] | None = None

    def pause(self) -> None:
        """At the end of a step: of the first, when the others may still be starting, and then of each turn."""
        if self.played % self.steps == 0:
            self._say(WAITING)
            if self.pipes is not None and not os.read(self.pipes[1], 1):
                self._run_on()
        self.played += 1

    def end(self) -> None:
        self._say(ENDED)

    def _say(self, word: bytes) -> None:
        try:
            if self.pipes is None:
                self.pipes = self._opened()
            os.write(self.pipes[0], word)
        except OSError:
            self._run_on()

    def _run_on(self) -> None:
        self.steps = 1 << 62

    def _opened(self) -> tuple[int, int]:
        """Raises OSError where the other end is gone; opening waits for nobody, reading does."""
        go = os.open(os.path.join(self.folder, GO), os.O_RDONLY | os.O_NONBLOCK)
        ask = os.open(os.path.join(self.folder, ASK), os.O_WRONLY | os.O_NONBLOCK)
        os.set_blocking(go, True)
        return ask, go
