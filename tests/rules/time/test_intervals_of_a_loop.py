"""TIME01: what each iteration of a loop times, and what it waits for outside of that."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.rules.time.timed_programs import SETUP, UNSYNCHRONISED
from tests.support import findings, fixed

LOOP = """
total = 0.0
start = time.time()
for i, (batch, label) in enumerate(loader):
    print(time.time() - start)
    {before}
    loss = F.cross_entropy(net(batch.to(device)), label.to(device))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(time.time() - start)  # here
    {after}
"""
ALWAYS = "total += loss.item()"
SELDOM = "if i % 10 == 0: print(loss.item())"


def _lines(before: str, after: str) -> list[int]:
    return [finding.line for finding in findings(SETUP + LOOP.format(before=before, after=after), "TIME01")]


HERE = (SETUP + LOOP).splitlines().index("    print(time.time() - start)  # here") + 1


@pytest.mark.parametrize(("waits", "lines"), [(ALWAYS, [HERE]), (SELDOM, []), ("pass", [])])
def test_the_next_iteration_waits_in_its_own_interval_unless_this_one_waits_behind_it(
    waits: str, lines: list[int]
) -> None:
    assert _lines("start = time.time()", waits) == lines


@pytest.mark.parametrize(("waits", "lines"), [(ALWAYS, [HERE]), (SELDOM, []), ("pass", []), ("print(loss.shape)", [])])
def test_an_interval_that_begins_in_the_iteration_before(waits: str, lines: list[int]) -> None:
    assert _lines("pass", f"{waits}\n    start = time.time()") == lines


def test_an_interval_that_the_iteration_before_waits_in() -> None:
    assert _lines("pass", f"start = time.time()\n    {ALWAYS}") == []


def test_a_clock_that_is_set_at_intervals_only() -> None:
    assert _lines("pass", f"{ALWAYS}\n    if i % 10 == 0:\n        start = time.time()") == []


EVALUATED = """
for x, y in batches:
    begun = time.time()
    out = net(x)
    {taken} = time.time() - begun
    print({taken})
"""


@pytest.mark.parametrize("head", ["", "def evaluate():"], ids=["in one function", "in another function"])
@pytest.mark.parametrize(("taken", "is_fixed"), [("seconds", False), ("per_batch", True)])
def test_an_interval_is_not_waited_for_alone_where_the_like_of_each_training_step_stays(
    taken: str, is_fixed: bool, head: str
) -> None:
    training = UNSYNCHRONISED["a training step that nothing waits for"].replace("start", "begun")
    evaluated = EVALUATED.format(taken=taken)
    evaluated = f"{head}{indent(evaluated, '    ')}\nevaluate()\n" if head else evaluated
    code = SETUP + "batches = [(x, y)] * 3\n" + training + evaluated
    assert len(findings(code, "TIME01")) == 2
    assert ("synchronize()" in fixed(code, "TIME01", unsafe=True)) is is_fixed


SPREAD = """
def spread(rows, nets):
    begun = time.time()
    parts = [nets[i](rows.to({place})) for i in range(4)]
    print(time.time() - begun)
    return parts
"""


@pytest.mark.parametrize(("place", "is_fixed"), [("i", False), ("device", True), ("torch.float16", True)])
def test_one_of_several_gpus_is_not_waited_for_alone(place: str, is_fixed: bool) -> None:
    code = SETUP + SPREAD.format(place=place) + "\nspread(x, [net] * 4)\n"
    assert len(findings(code, "TIME01")) == 1
    assert ("synchronize()" in fixed(code, "TIME01", unsafe=True)) is is_fixed
