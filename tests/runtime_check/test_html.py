"""The page of a verdict: whole by itself, and nothing of the user's text becomes markup."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from torchlint.runtime_check.equivalence import Equivalence, Sameness
from torchlint.runtime_check.html import page
from torchlint.runtime_check.stats import compare
from torchlint.runtime_check.verdict import (
    Candidate,
    Counters,
    Environment,
    FixStatus,
    FixVerdict,
    Memory,
    Overall,
    Target,
    Timing,
    Verdict,
    Weight,
)

KEPT = Candidate("MEM01", "train.py", 3, frozenset({3}), "`losses` keeps <graphs>")
REFUSED = Candidate("VEC01", "train.py", 9, frozenset({9}), "a loop")
DIFF = "--- train.py\n+++ train.py\n@@ -3 +3 @@\n-    kept.append(a < b)\n+    kept.append((a < b).detach())\n"


@pytest.fixture
def verdict() -> Verdict:
    environment = Environment("2026-01-01", "cpu", "X & Y", None, "2.13.0", None, 1, 0.1, "optimizer", 30, 5)
    before = Counters(50.0, 40.0, 2.0, 4e6, 3e6, 4.0, 7.0, {"train.py:5": 2.0}, (1e6, 1.1e6, 1.2e6), (2e6, 3e6, 4e6))
    after = replace(before, syncs=0.0, sync_lines={}, alive_by_step=(1e6,) * 3, peak_by_step=(2e6,) * 3)
    spread = {side: tuple(0.01 + 0.001 * at for at in range(19)) for side in ("A", "A'", "B")}
    original, control, changed = ((0.010, 0.011), (0.011, 0.010), (0.005, 0.006))
    timing = Timing("cpu", compare(original, control, changed), original, control, changed, None, 25, spread)
    same = Equivalence(Sameness.IDENTICAL, "bit by bit")
    return Verdict(
        Overall.ACCEPT,
        ("faster",),
        Target(("python", "train.py", "--name=<script>"), ("train.py",)),
        1.0,
        environment,
        same,
        before,
        after,
        Memory(Weight.LIGHTER, ("peak",)),
        timing,
        (
            FixVerdict(KEPT, FixStatus.KEPT, "", ("less memory",), same),
            FixVerdict(REFUSED, FixStatus.REFUSED, "results differ: by <much>"),
        ),
    )


def test_the_page_needs_nothing_from_elsewhere_and_closes_what_it_opens(verdict: Verdict) -> None:
    text = page(verdict, {KEPT: DIFF})
    assert not re.search(r"(src|href|url\()|<script|@import|https?:", text)
    whole = re.sub(r"<meta[^>]*>", "", text.removeprefix("<!DOCTYPE html>\n"))
    root = ElementTree.fromstring(whole)
    assert {heading.text for heading in root.iter("h2")} == {
        "Time of a step",
        "Memory over steps",
        "Where the host waits, per step",
        "Fixes",
    }
    assert len(list(root.iter("svg"))) == 2


def test_text_of_the_user_stays_text(verdict: Verdict) -> None:
    root = ElementTree.fromstring(re.sub(r"<meta[^>]*>", "", page(verdict, {KEPT: DIFF}).partition("\n")[2]))
    words = "".join(root.itertext())
    for text in ("--name=<script>", "X & Y", "`losses` keeps <graphs>", "results differ: by <much>"):
        assert text in words


def test_each_fix_stands_beside_its_diff(verdict: Verdict) -> None:
    root = ElementTree.fromstring(re.sub(r"<meta[^>]*>", "", page(verdict, {KEPT: DIFF}).partition("\n")[2]))
    kept, refused = root.iter("article")
    assert [part.text for part in kept.iter("del")] == ["-    kept.append(a < b)"]
    assert [part.text for part in kept.iter("ins")] == ["+    kept.append((a < b).detach())"]
    assert [part.text for part in kept.iter("b")] == ["kept"]
    assert list(refused.iter("pre")) == []


def test_memory_is_drawn_for_every_step_of_both_versions(verdict: Verdict) -> None:
    curves = re.findall(r'<polyline[^>]* points="([^"]*)"', page(verdict, {}))
    assert [len(curve.split()) for curve in curves] == [3, 3, 3, 3]
    heights = [float(point.partition(",")[2]) for point in curves[0].split()]
    assert heights == sorted(heights, reverse=True)
    assert len({point.partition(",")[2] for point in curves[1].split()}) == 1


def test_figures_of_the_cpu_say_so_in_every_part(verdict: Verdict) -> None:
    parts = page(verdict, {}).split("<h2>")[1:4]
    assert all("no GPU was used" in part for part in parts)


def test_a_verdict_without_figures_is_a_page_too() -> None:
    failed = Verdict(Overall.ERROR, ("baseline does not run",), Target(("python",), ()), 1.0, log="<lost>")
    text = page(failed, {})
    assert "&lt;lost&gt;" in text
    assert "<svg" not in text
