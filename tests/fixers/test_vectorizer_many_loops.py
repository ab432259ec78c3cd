"""Many loops over the same names: what is asked of each does not grow with the pairs of all others."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.support import fixed
from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.semantics.entities import Write


def test_reads_in_other_loops_are_asked_for_the_write_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, asked = Reaching.runs_before, [0, 0]

    def runs_before(reaching: Reaching, write: Write, place: cst.CSTNode) -> bool:
        asked[-1] += 1
        return plain(reaching, write, place)

    monkeypatch.setattr(Reaching, "runs_before", runs_before)
    loop = "for i in range(9):\n    total[i] = rows[i, 0] * 2\n"
    for count in (8, 16):
        asked = [asked[-1], 0]
        code = "import torch\nrows = torch.randn(9, 4)\ntotal = torch.zeros(9)\n" + loop * count
        assert "for" not in fixed(code, "VEC01")
    assert asked[1] < 6 * asked[0]
