"""Fixes that compute the same but make the program slower, on figures that are made up."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from torchlint.runtime_check.check import Check, Evidence
from torchlint.runtime_check.equivalence import Equivalence, Sameness
from torchlint.runtime_check.fix_by_fix import FixByFix
from torchlint.runtime_check.stats import compare
from torchlint.runtime_check.trials import Contents
from torchlint.runtime_check.verdict import Candidate, Counters, Overall, Target, Timing, Verdict, weigh

from tests.runtime_check.runs import run

COUNTERS = Counters(100.0, 80.0, 2.0, 64e6, 60e6, 0.0, 0.0)
SAME = Equivalence(Sameness.IDENTICAL, "agree")
NOISE = (0.99, 1.0, 1.01, 1.0, 0.99)


class Clocked:
    """A check in which each file of a rewrite makes the program slower by a factor."""

    counters = COUNTERS
    before = run(lines={"train.py": frozenset({1})})
    environment = None

    def __init__(self, factors: Mapping[str, float]) -> None:
        self.factors = factors

    def evidence(self, contents: Contents, what: str) -> Evidence:
        return Evidence(self.before, SAME, COUNTERS, weigh(COUNTERS, COUNTERS))

    def timing(self, contents: Contents, what: str, evidence: Evidence) -> Timing:
        factor = 1.0
        for name in contents:
            factor *= self.factors[name]
        changed = tuple(factor * value for value in reversed(NOISE))
        return Timing("wall", compare(NOISE, NOISE, changed), NOISE, NOISE, changed, None, 25)

    def judged(self, contents: Contents, target: Target, evidence: Evidence, timing: Timing | None) -> Verdict:
        return Verdict(Overall.ACCEPT, (), target, 0.0, timing=timing)


def verdict_of(**factors: float) -> Verdict:
    candidates = [Candidate(name, "train.py", 1, frozenset({1})) for name in factors]

    def contents(chosen: Collection[Candidate]) -> Contents:
        return {candidate.code: b"" for candidate in chosen}

    return FixByFix(cast(Check, Clocked(factors)), candidates, contents, Target((), ())).verdict()


def outcome(verdict: Verdict) -> dict[str, str]:
    return {fix.fix.code: fix.reason or fix.status.value for fix in verdict.fixes}


def test_the_slow_one_goes_and_the_others_stay() -> None:
    assert outcome(verdict_of(fast=0.8, slow=1.6, plain=1.0)) == {"fast": "kept", "slow": "slower", "plain": "kept"}


def test_where_none_is_slower_by_itself_all_go() -> None:
    verdict = verdict_of(one=1.015, other=1.015, third=1.015)
    assert set(outcome(verdict).values()) == {"slower together"}
    assert verdict.overall is Overall.REJECT
    assert verdict.kept == ()


def test_what_is_still_slower_without_the_slow_one_goes_too() -> None:
    verdict = verdict_of(slow=1.6, one=1.015, other=1.015, third=1.015)
    assert outcome(verdict)["slow"] == "slower"
    assert verdict.kept == ()
