"""A small share of `python -m tests.robustness.check_hostile`, which runs it all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs a POSIX system", allow_module_level=True)

from tests.robustness import check_hostile
from tests.robustness.hostile import hostile_files

CHECKS = (check_hostile.check_formats, check_hostile.check_fixes, check_hostile.check_full_disk)


@pytest.mark.parametrize("check", CHECKS, ids=[check.__name__.removeprefix("check_") for check in CHECKS])
def test_no_promise_is_broken_for_hostile_input(check: check_hostile.Check, project: Path) -> None:
    assert list(check(project, list(hostile_files(22, seed=1)))) == []


def test_the_same_seed_makes_the_same_files() -> None:
    first, again, other = (list(hostile_files(30, seed)) for seed in (3, 3, 4))
    assert first == again
    assert first != other
    assert len({file.name.partition("_")[2].partition(".")[0] for file in first}) == 22
