"""TIME01: functions of the program that read the clock."""

from __future__ import annotations

import pytest

from tests.rules.time.timed_programs import SETUP
from tests.support import findings

TIMED = """
{clock}

start = now()
out = net(x)
print(now() - start)
"""


@pytest.mark.parametrize(
    ("clock", "count"),
    [
        ("now = lambda: int(round(time.time() * 1000))", 1),
        ("def now():\n    return 1e3 * time.perf_counter()", 1),
        ("def now():\n    '''In milliseconds.'''\n    return float(time.time()) * 1000", 1),
        ("def now():\n    torch.cuda.synchronize()\n    return time.time() * 1000", 0),
        ("def now():\n    return time.time() - time.time()", 0),
        ("def now():\n    seen = time.time()\n    return 3", 0),
        ("now = lambda: shown(time.time())", 0),
    ],
)
def test_a_clock_that_counts_in_other_units(clock: str, count: int) -> None:
    assert len(findings(SETUP + TIMED.format(clock=clock), "TIME01")) == count
