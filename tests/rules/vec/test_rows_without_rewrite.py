"""VEC01, VEC06 and VEC08 where the vectoriser has no rewrite: what is found, and what looks like it."""

from __future__ import annotations

import pytest

from tests.rules.vec.rows_look_alikes import LOOK_ALIKES
from tests.rules.vec.rows_without_rewrite import FOUND, HEAD
from tests.support import findings, fixed

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")


REWRITTEN = {"rows that Python adds up", "rows that are normalised by a function", "numbers that are counted up"}


@pytest.mark.parametrize("name", FOUND)
def test_work_on_rows_is_found(name: str) -> None:
    code, loop = FOUND[name]
    assert [finding.code for finding in findings(HEAD + loop, *ROW_RULES)] == [code]
    if name not in REWRITTEN:
        assert fixed(HEAD + loop, *ROW_RULES) == HEAD + loop


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_not_reported(name: str) -> None:
    assert findings(HEAD + LOOK_ALIKES[name], *ROW_RULES) == []
