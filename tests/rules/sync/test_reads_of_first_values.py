"""Reads of numbers whose fate hangs on nothing: a mark that says there is no number yet, a list that nobody reads."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import evaluation, line_of, training
from tests.support import findings, fixed


@pytest.mark.parametrize(
    ("start", "body", "count"),
    [
        ("mean = -1", "if mean < 0:\n    mean = loss.item()\nmean = 0.9 * mean", 0),  # once
        ("mean = -1", "now = loss.item()\nif mean < 0:\n    mean = now\nmean = 0.9 * mean + 0.1 * now", 1),
        ("mean = -1.0", "now = loss.item()\nmean = now if mean == -1.0 else 0.9 * mean + 0.1 * now", 1),
        ("mean = 1", "if mean < 0:\n    mean = loss.item()\nmean = 0.9 * mean", 0),  # it may become negative, or not
        ("mean = -1", "if mean < 0.1:\n    stop()\nmean = loss.item()", 0),  # it is asked in every step
        ("mean = -1", "if mean > 0:\n    mean = 0.9 * mean + loss.item()\n    save(mean)\nelse:\n    mean = 1", 0),
        ("mean = -1", "if mean < 0:\n    stop()\nmean = loss.item()", 0),
    ],
)
def test_a_mark_that_there_is_no_number_yet_is_no_test_of_one(start: str, body: str, count: int) -> None:
    code = training(body, start, "return mean")
    assert len(findings(code, "SYNC01")) == count


def test_a_sum_that_gives_a_marked_mean_its_start_gets_no_fix() -> None:
    body = "total += loss.item()\nif first < 0:\n    first = total"
    code = training(body, "total, first = 0.0, -1", "return total / first")
    assert len(findings(code, "SYNC01")) == 1
    assert fixed(code, "SYNC01") == code


@pytest.mark.parametrize(
    ("body", "before", "after", "count"),
    [
        ("kept.append(out.cpu())", "kept = []", "", 1),
        ("kept += [out.cpu(), 3]", "kept = []", "", 1),
        ("kept.append((out.cpu().numpy(), step))", "kept = []", "return loss", 1),
        ("kept.append(out.cpu())", "kept = []", "return kept", 0),
        ("kept.append(out.cpu())\nprint(len(kept))", "kept = []", "", 0),
        ("kept.append(out.cpu())\nall_of(lambda: kept)", "kept = []", "", 0),
        ("kept.append(out.cpu())", "kept = shown", "", 0),
        ("kept.append(out.cpu())", "global kept\nkept = []", "", 0),
        ("kept.append(out.cpu())\nexit()", "kept = []", "", 0),  # one batch
        ("last = kept.append(out.cpu())", "kept = []", "return last", 0),
    ],
)
def test_copies_that_go_into_a_list_that_nothing_reads(body: str, before: str, after: str, count: int) -> None:
    code = evaluation(body, before, after)
    found = findings(code, "SYNC03")
    assert [(each.line, "nothing uses the copy" in each.message) for each in found] == [
        (line_of(code, "cpu()"), True)
    ] * count
