"""TIME01: a time that somebody has switched off is read by nobody."""

from __future__ import annotations

import pytest

from tests.rules.time.timed_programs import SETUP
from tests.support import findings

TIMED = """
seconds = torch.zeros(2)
for step in range(10):
    start = time.time()
    out = net(x)
    end = time.time()
    {test}
        seconds[0] = seconds[0] + (end - start)
        print(end - start)
    {other}
"""


@pytest.mark.parametrize(
    ("test", "other", "count"),
    [
        ("if False:", "", 0),
        ("if False and step > 1:", "", 0),
        ("if step > 1 and False:", "", 0),
        ("if False or step > 1:", "", 1),
        ("if step > 1:", "", 1),
        ("if 0:", "", 0),
        ("if not True:", "", 0),
        ("if True:\n        pass\n    else:", "", 0),
        ("if False:", "print(end - start)", 1),
        ("if False:", "else:\n        print(end - start)", 1),
    ],
)
def test_a_time_under_a_test_that_never_holds(test: str, other: str, count: int) -> None:
    assert len(findings(SETUP + TIMED.format(test=test, other=other), "TIME01")) == count


@pytest.mark.parametrize(("test", "count"), [("if False:", 0), ("if step % 2:", 1)])
def test_a_difference_that_is_only_read_there(test: str, count: int) -> None:
    timed = TIMED.replace("end = time.time()\n", "seconds = time.time() - start\n").replace("seconds[0] = ", "")
    code = timed.replace("end - start", "seconds").format(test=test, other="")
    assert len(findings(SETUP + code, "TIME01")) == count
