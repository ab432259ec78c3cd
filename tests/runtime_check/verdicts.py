"""A verdict as the tests of its forms show it: text of the user that could be taken for markup is everywhere in it."""

from __future__ import annotations

from dataclasses import replace

from torchlint.runtime_check.equivalence import Equivalence, Sameness
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
FAILED = Verdict(Overall.ERROR, ("baseline does not run",), Target(("python",), ()), 1.0, log="<lost>")


def accepted() -> Verdict:
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
            FixVerdict(REFUSED, FixStatus.REFUSED, "results differ: by <much> | `@all` #1"),
        ),
    )
