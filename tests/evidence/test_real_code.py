"""The record of the runs: complete, in step with its table, and compared strictly."""

from __future__ import annotations

import json
import math

import pytest
import torch

from tests.evidence.comparing import compare, same
from tests.evidence.driving import without_times
from tests.evidence.piece import names
from tests.evidence.real_code import RECORDS, TABLE, applied, broken
from tests.evidence.table import table

DIFFERENT = {
    "minus zero": (0.0, -0.0),
    "an int": (1.0, 1),
    "a tensor": (1, torch.tensor(1)),
    "the last bit": (torch.tensor([1.0]), torch.tensor([1.0]).nextafter(torch.tensor([2.0]))),
    "the dtype": (torch.ones(2), torch.ones(2, dtype=torch.float64)),
    "the shape": (torch.ones(2), torch.ones(2, 1)),
}


def test_every_piece_has_a_record_in_which_safe_fixes_kept_what_it_computes() -> None:
    records = json.loads(RECORDS.read_text())
    assert sorted(records) == sorted(names())
    assert not [name for name, record in records.items() if broken(record)]


def test_the_table_is_made_from_the_records() -> None:
    assert TABLE.read_text() == table(json.loads(RECORDS.read_text()))


@pytest.mark.parametrize(("before", "after"), DIFFERENT.values(), ids=DIFFERENT)
def test_not_the_same(before: object, after: object) -> None:
    assert not same(before, after)


def test_the_same() -> None:
    assert same(math.nan, math.nan)
    assert same(torch.tensor([math.nan, 1.0]), torch.tensor([math.nan, 1.0]))


def test_what_differs_is_told_apart() -> None:
    before = {"loss": 2.0, "count": 3, "printed": "3", "weight": torch.ones(2), "gone": 1}
    after = {"loss": 1.5, "count": torch.tensor(3), "printed": "4", "weight": torch.ones(2)}
    found = compare(before, after)
    assert (found.numbers, found.types, found.texts, found.missing) == (["loss"], ["count"], ["printed"], ["gone"])
    assert (found.absolute, found.relative) == (0.5, 0.25)


def test_a_fix_counts_as_run_where_one_of_its_lines_did() -> None:
    def finding(line: int, function: str | None) -> dict[str, object]:
        span = {"line": line, "end_line": line}
        fix = {"applicability": "safe", "edits": [span]}
        return {**span, "code": "SYNC01", "path": "train.py", "function": function, "fix": fix}

    ran_in_function, ran_at_import = (4, True), (5, False)
    findings = [finding(4, "train"), finding(5, "train"), finding(5, None)]
    assert applied(findings, {"train.py": {ran_in_function, ran_at_import}}, {"safe"}) == ({"SYNC01": 3}, {"SYNC01": 2})
    assert applied(findings, {"other.py": {ran_in_function}}, {"safe"}) == ({}, {})


def test_what_was_printed_is_compared_less_its_times_however_wide_they_are() -> None:
    fast, slow = "| lr 2.00 | ms/batch  9.87 | loss 2.1", "| lr 2.00 | ms/batch 10.02 | loss 2.1"
    assert without_times(fast) == without_times(slow) == "| lr 2.00 | ms/batch | loss 2.1"
    assert without_times("done in  9.5s") == without_times("done in 12.5s")
    assert without_times("loss 2.1") != without_times("loss 2.2")
