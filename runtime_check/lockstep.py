"""Several programs that are alive together, of which one runs at a time: each makes a few steps and lets the others.

What slows the machine down for a second slows all of them down, and so it is not in the ratio of their times.
"""

from __future__ import annotations

import os
import random
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .boot.torchlint_probe.settings import Settings
from .boot.torchlint_probe.turns import ASK, GO, WAITING
from .launch import Command, Outcome, ended, outcome

_GLANCE = 0.1  # seconds between two looks at whether a program is still alive


@dataclass(frozen=True, slots=True)
class Player:
    process: subprocess.Popen[bytes]
    ask: int
    go: int

    def plays(self) -> None:
        os.write(self.go, b"g")

    def waits(self, deadline: float) -> bool:
        """Whether it asks for its next turn, rather than that it has made its last step, ended, or takes too long."""
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.ask], [], [], _GLANCE)
            if ready:
                return bool(os.read(self.ask, 1) == WAITING)
            if self.process.poll() is not None:
                return False
        return False


def run_in_turn(command: Command, each: Sequence[Settings], logs: Sequence[Path], seed: int) -> list[Outcome]:
    """One outcome for each settings, of which folders of results and of logs are empty and their own.

    Raises CommandError. KeyboardInterrupt leaves no process behind.
    """
    deadline = time.monotonic() + len(each) * command.timeout
    with ExitStack() as stack:
        players = [stack.enter_context(_seated(command, one, log)) for one, log in zip(each, logs, strict=True)]
        _play(players, deadline, random.Random(seed))
        in_time = [ended(player.process, one, deadline) for player, one in zip(players, each, strict=True)]
    return [
        outcome(player.process, timely, one, log)
        for player, timely, one, log in zip(players, in_time, each, logs, strict=True)
    ]


def _play(players: Sequence[Player], deadline: float, order: random.Random) -> None:
    """In every round each has one turn, in random order, so that none always runs behind the same."""
    playing = [player for player in players if player.waits(deadline)]
    while playing:
        for player in order.sample(playing, len(playing)):
            player.plays()
            if not player.waits(deadline):
                playing.remove(player)


@contextmanager
def _seated(command: Command, settings: Settings, logs: Path) -> Iterator[Player]:
    """Both pipes are open for reading and writing here, so that no end waits for the other to open its own."""
    with ExitStack() as stack:
        pipes = [_pipe(Path(settings.results, name), stack) for name in (ASK, GO)]
        yield Player(stack.enter_context(command.started(settings, logs)), *pipes)


def _pipe(path: Path, stack: ExitStack) -> int:
    os.mkfifo(path)
    number = os.open(path, os.O_RDWR)
    stack.callback(os.close, number)
    return number
