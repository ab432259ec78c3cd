"""In which way two versions run beside each other while they are timed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest
from torchlint.runtime_check.run import Run
from torchlint.runtime_check.schedule import Side
from torchlint.runtime_check.timing import _protocol, timing
from torchlint.runtime_check.trials import ORIGINAL, Contents, FailedError, Options, Trials, Window
from torchlint.runtime_check.verdict import Environment, Overall, Protocol

from tests.runtime_check.runs import run

FIXED: Contents = {"train.py": b"fixed"}


class Timed:
    """Trials that take 2 s per step before the fix, 1 s after it; alone when they have to be."""

    def __init__(self, *, bear_company: bool) -> None:
        self.options = Options(blocks=3)
        self.timed = Window(steps=4, warmup=1)
        self.boundary = "optimizer"
        self.bear_company = bear_company
        self.alone: list[Contents] = []

    def time(self, contents: Contents, what: str) -> Run:
        self.alone.append(contents)
        return run(steps=({"wall": 1.0 if contents else 2.0, "data": 0.5},) * 4)

    def time_together(self, each: Mapping[Side, Contents], what: str, seed: int) -> dict[Side, Run]:
        if not self.bear_company:
            raise FailedError(Overall.ERROR, "address already in use")
        return {
            side: run(steps=({"wall": 1.0 if contents else 2.0, "data": 0.5},) * 4) for side, contents in each.items()
        }


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_AVPHYS_PAGES": 4 << 20, "SC_PAGE_SIZE": 4096}.__getitem__)


@pytest.mark.parametrize("bear_company", [True, False])
def test_programs_that_bear_no_company_run_one_after_the_other(bear_company: bool) -> None:
    trials = Timed(bear_company=bear_company)
    environment = Environment.of(run(), 1, load=0.0)
    found = timing(cast(Trials, trials), FIXED, "rewritten", environment, run(), run())
    assert found.protocol is (Protocol.LOCKSTEP if bear_company else Protocol.SEPARATE)
    assert (found.original, found.control, found.changed) == ((2.0,) * 3, (2.0,) * 3, (1.0,) * 3)
    assert sorted(map(len, trials.alone)) == ([] if bear_company else [len(ORIGINAL)] * 6 + [len(FIXED)] * 3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Protocol.LOCKSTEP),
        ({"helpers": 2}, Protocol.SEPARATE),
        ({"boundary": "program"}, Protocol.SEPARATE),
        ({"device": "cuda"}, Protocol.SEPARATE),
        ({"steps": ({"peak_bytes": 1e15},)}, Protocol.SEPARATE),
    ],
    ids=["a program alone", "helper processes", "no steps", "a device's queue", "no room for three"],
)
def test_only_what_stands_still_while_it_waits_is_timed_in_turn(
    given: dict[str, object], expected: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_AVPHYS_PAGES": 4 << 20, "SC_PAGE_SIZE": 4096}.__getitem__)
    observed = run(**given)
    environment = Environment.of(observed, Options().warmup, load=0.0)
    assert _protocol(environment, observed, observed) is expected
