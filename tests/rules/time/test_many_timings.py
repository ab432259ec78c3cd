"""Many timings in one function: the pairs of readings are looked for once, and not once for each of them."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.support import fixed
from torchlint.analyses.time import stopwatch
from torchlint.semantics.model import Model

HEAD = """\
import time
import torch

def run(x):
    net = torch.nn.Linear(4, 4).cuda()
    x = x.cuda()
"""
TIMING = "    start = time.time()\n    net(x)\n    print(time.time() - start)\n"


def test_the_readings_of_a_file_are_paired_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, paired = stopwatch.reading, []

    def reading(model: Model, node: cst.BaseExpression) -> cst.Call | None:
        paired.append(node)
        return plain(model, node)

    monkeypatch.setattr(stopwatch, "reading", reading)
    code = HEAD + TIMING * 6
    assert fixed(code, "TIME01").count("synchronize()") == 12
    assert max(map(paired.count, paired)) < 6
