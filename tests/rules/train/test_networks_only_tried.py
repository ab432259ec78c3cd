"""TRAIN04: a network whose output nobody reads is not evaluated."""

from __future__ import annotations

import pytest

from tests.support import findings

TRIED = """
import time
import torch
from torch import nn

def make_net():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Dropout(0.1)).cuda()

def test_sizes(datasets):
    for test_set in datasets:
        net = make_net()
        images, labels = next(iter(test_set))
        start = time.time()
        with torch.no_grad():
            output = net(images.cuda())
        torch.cuda.synchronize()
        print(time.time() - start)
        {after}
"""


@pytest.mark.parametrize(
    ("after", "count"), [("del net, output", 0), ("pass", 0), ("print((output.mean(1) - labels.cuda()).abs())", 1)]
)
def test_what_is_only_run_gives_no_wrong_results(after: str, count: int) -> None:
    assert len(findings(TRIED.format(after=after), "TRAIN04")) == count
