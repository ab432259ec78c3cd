"""Programs made at random print the same before and after their fixes: where several fixers meet, none spoils another.

`python -m tests.fixers.training_runs 0 3000` runs as many as one likes.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fixers.training_programs import program
from tests.fixers.training_runs import outcome, printed

_TOGETHER = 12


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("first", range(0, 24, _TOGETHER))
def test_programs_print_the_same_after_their_fixes(first: int, unsafe: bool) -> None:
    applied: Counter[str] = Counter()
    for number in range(first, first + _TOGETHER):
        found = outcome(number, unsafe=unsafe)
        if found.runs:
            assert found.after == found.before, f"program {number}:\n{found.fixed}"
            assert found.is_stable, f"program {number}"
            applied += found.applied
    assert len(applied) > 1, "hardly any fixer was at work"


def test_a_number_that_changes_is_seen() -> None:
    text = program(1)
    assert printed(text) == printed(text)
    assert printed(text.replace("lr=0.1", "lr=0.1000001")) != printed(text)
