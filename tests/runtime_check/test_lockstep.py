"""Programs that take turns. They speak to the other side as the probe does, and need no torch."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from torchlint.runtime_check.boot.torchlint_probe.settings import Settings
from torchlint.runtime_check.launch import BOOT, CommandError, End, Outcome, command
from torchlint.runtime_check.lockstep import run_in_turn

ROUNDS = 6
PLAYER = """
import json, os, sys, time
from torchlint_probe.settings import Settings
from torchlint_probe.turns import Turns

settings = Settings.from_environment()
turns = Turns(settings.results, settings.turn)
begin = time.monotonic()
for step in range(settings.steps):
    if step == settings.warmup and os.path.exists("ends-early"):
        sys.exit(int(open("ends-early").read()))
    if step == settings.warmup and os.path.exists("hangs"):
        time.sleep(60)
    time.sleep(0.002)
    with open("steps", "a") as file:
        print(begin, time.monotonic(), file=file)
    turns.pause()
    begin = time.monotonic()
turns.end()
"""


def play(tmp_path: Path, *files: dict[str, str], turn: int = 2, timeout: float = 20.0) -> list[Outcome]:
    """One player for each set of files that its folder has; its steps are in "steps" there."""
    settings, logs = [], []
    for number, contents in enumerate(files):
        tree, results, log = (tmp_path / str(number) / name for name in ("tree", "results", "logs"))
        for folder in (tree, results, log):
            folder.mkdir(parents=True)
        for name, text in {"player.py": PLAYER, **contents}.items():
            (tree / name).write_text(text)
        logs.append(log)
        settings.append(
            Settings(str(tree), str(tmp_path / "original"), str(results), "time", steps=2 * ROUNDS, warmup=4, turn=turn)
        )
    return run_in_turn(command([sys.executable, "player.py"], Path(), timeout), settings, logs, seed=0)


def steps(tmp_path: Path, number: int) -> list[tuple[float, float]]:
    lines = (tmp_path / str(number) / "tree" / "steps").read_text().splitlines()
    return [(float(begin), float(end)) for begin, end in map(str.split, lines)]


def test_one_runs_while_the_others_wait(tmp_path: Path) -> None:
    play(tmp_path, {}, {}, {})
    spans = sorted((span, number) for number in range(3) for span in steps(tmp_path, number)[1:])
    assert len(spans) == 3 * (2 * ROUNDS - 1)
    assert all(end <= begin for ((_, end), _), ((begin, _), _) in pairwise(spans))


def test_a_turn_has_so_many_steps_and_a_round_a_turn_of_each(tmp_path: Path) -> None:
    play(tmp_path, {}, {}, {}, turn=2)
    spans = sorted((span, number) for number in range(3) for span in steps(tmp_path, number)[1:])
    players = [number for _, number in spans]
    turns = [players[at : at + 2] for at in range(0, 3 * (2 * ROUNDS - 2), 2)]
    assert all(len(set(turn)) == 1 for turn in turns)
    rounds = [tuple(turn[0] for turn in turns[at : at + 3]) for at in range(0, len(turns), 3)]
    assert all(set(each) == {0, 1, 2} for each in rounds)
    assert len(set(rounds)) > 1, "the order is the same in every round"


def test_the_others_play_on_when_one_ends(tmp_path: Path) -> None:
    outcomes = play(tmp_path, {}, {"ends-early": "3"}, {})
    assert [outcome.code for outcome in outcomes] == [0, 3, 0]
    assert outcomes[1].end is End.FAILED
    assert [len(steps(tmp_path, number)) for number in range(3)] == [2 * ROUNDS, 4, 2 * ROUNDS]


def test_one_that_hangs_ends_the_game_in_time_and_nothing_is_left(tmp_path: Path) -> None:
    started = time.monotonic()
    outcomes = play(tmp_path, {}, {"hangs": ""}, timeout=2.0)
    assert time.monotonic() - started < 20
    assert outcomes[1].end is End.TIMED_OUT


def test_a_program_whose_partners_are_gone_runs_on(tmp_path: Path) -> None:
    """As after a kill of torchlint itself: nobody holds the other end of the pipes."""
    sys_path, results = str(BOOT), tmp_path / "results"
    results.mkdir()
    (tmp_path / "player.py").write_text(f"import sys\nsys.path.insert(0, {sys_path!r})\n{PLAYER}")
    settings = Settings(str(tmp_path), str(tmp_path / "original"), str(results), "time", steps=5, warmup=9, turn=1)
    alone = command([sys.executable, "player.py"], Path(), 20.0)
    (tmp_path / "logs").mkdir()
    assert alone.run(settings, tmp_path / "logs").code == 0
    assert len((tmp_path / "steps").read_text().splitlines()) == 5


def test_a_program_that_cannot_be_started_leaves_no_pipe_open(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "logs").mkdir()
    settings = Settings(str(tmp_path), str(tmp_path / "original"), str(tmp_path / "results"), "time", turn=1)
    before = set(Path("/proc/self/fd").iterdir()) if Path("/proc/self/fd").exists() else set()
    missing = replace(command([sys.executable], Path(), 1.0), words=(str(tmp_path / "nowhere"),))
    with pytest.raises(CommandError, match="cannot run"):
        run_in_turn(missing, [settings], [tmp_path / "logs"], seed=0)
    after = set(Path("/proc/self/fd").iterdir()) if before else set()
    assert len(after) <= len(before)
