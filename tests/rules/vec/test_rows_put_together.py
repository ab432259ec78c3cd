"""Rows, windows and numbers that a loop takes one by one, only for one tensor to be made of them."""

from __future__ import annotations

import pytest

from tests.rules.vec.rows_kept_apart import SILENT
from tests.rules.vec.rows_put_together import FOUND
from tests.rules.vec.rows_without_rewrite import HEAD
from tests.support import findings, fixed

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")


@pytest.mark.parametrize("name", FOUND)
def test_what_is_made_one_tensor_is_found(name: str) -> None:
    code, loop = FOUND[name]
    assert [finding.code for finding in findings(HEAD + loop, *ROW_RULES)] == [code]
    assert fixed(HEAD + loop, *ROW_RULES) == HEAD + loop


@pytest.mark.parametrize("name", SILENT)
def test_what_is_not_is_not_reported(name: str) -> None:
    assert findings(HEAD + SILENT[name], *ROW_RULES) == []


def test_a_table_is_named_as_what_is_looked_up() -> None:
    (found,) = findings(HEAD + FOUND["labels that are looked up in a dict"][1], "VEC01")
    assert "an entry of a table for each element of `labels`" in found.message


@pytest.mark.parametrize("rounds", ["range(0, 9, 0)", "range(99999999999999999999)", "range(1, 2, 3, 4)", "range(*x)"])
def test_a_range_that_has_no_length_is_no_reason_to_fail(rounds: str) -> None:
    loop = f"def doubled(x: torch.Tensor):\n    return torch.stack([x[i] * 2 for i in {rounds}])\n"
    assert "LINT04" not in [finding.code for finding in findings(HEAD + loop, *ROW_RULES)]


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("torch.stack(tensors=[x[i] * 2 for i in range(x.size(0))], dim=1)", "(x * 2).movedim(0, 1)"),
        ("torch.stack(rows=[x[i] * 2 for i in range(x.size(0))])", None),
    ],
)
def test_rows_that_are_given_by_name(call: str, after: str | None) -> None:
    code = f"def doubled(x: torch.Tensor):\n    return {call}\n"
    assert "LINT04" not in [finding.code for finding in findings(HEAD + code, *ROW_RULES)]
    expected = code.replace(call, after) if after is not None else code
    assert fixed(HEAD + code, *ROW_RULES, unsafe=True) == HEAD + expected
