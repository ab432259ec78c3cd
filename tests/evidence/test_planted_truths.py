"""The record is whole, and what it says is what the code says of the recorded samples; a few truths are tried anew."""

from __future__ import annotations

import json
from typing import Any

import pytest
from torchlint.runtime_check.stats import Pace, compare

from tests.evidence import planted_truths, truths

EVIDENCE: dict[str, Any] = json.loads(planted_truths.FILE.read_text(encoding="utf-8"))
SIDES = ("original", "control", "changed")


def test_every_planted_change_is_on_record() -> None:
    planted = {(change.program, change.name, change.truth) for change in truths.changes()}
    recorded = {(row["program"], row["name"], row["truth"]) for row in EVIDENCE["results"]["records"]}
    assert recorded == planted
    assert len(planted) >= 40


@pytest.mark.parametrize("part", EVIDENCE)
def test_nothing_that_was_said_is_wrong(part: str) -> None:
    assert planted_truths.wrong(EVIDENCE[part]) == 0


@pytest.mark.parametrize("part", EVIDENCE)
def test_a_record_says_where_it_was_made(part: str) -> None:
    assert all(EVIDENCE[part][fact] for fact in ("command", "commit", "date", "device", "torch", "python"))


def test_paces_follow_from_the_samples() -> None:
    for record in EVIDENCE["paces"]["records"]:
        assert compare(*(record[side] for side in SIDES)).pace.value == record["said"]


def test_comparisons_of_a_program_with_itself_follow_from_the_samples() -> None:
    for record in EVIDENCE["itself"]["records"]:
        found = truths.comparisons(*(record[side] for side in SIDES))
        assert [comparison.pace.value for comparison in found] == record["said"]


@pytest.mark.parametrize(
    ("pace", "true_of", "false_of"),
    [
        (Pace.FASTER, [0.5, 0.98], [1.0, 1.05]),
        (Pace.SLOWER, [1.02, 2.0], [1.0, 0.9]),
        (Pace.SAME, [1.0, 1.02, 0.99], [0.95, 1.05]),
        (Pace.NOT_SLOWER, [0.5, 1.0, 1.02], [1.05]),
        (Pace.INCONCLUSIVE, [0.5, 1.0, 2.0], []),
    ],
)
def test_what_a_pace_claims(pace: Pace, true_of: list[float], false_of: list[float]) -> None:
    assert all(truths.holds(pace, ratio) for ratio in true_of)
    assert not any(truths.holds(pace, ratio) for ratio in false_of)


@pytest.mark.usefixtures("forked")
def test_a_truth_of_each_kind_is_told_apart() -> None:
    names = {"a logsumexp written out", "one answer less"}
    found = truths.judged("answers", [change for change in truths.changes() if change.name in names])
    assert {(row["truth"], row["said"]) for row in found} == {("equal", "equal"), ("different", "different")}
