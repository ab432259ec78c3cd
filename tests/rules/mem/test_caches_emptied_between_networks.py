"""MEM06: a loop over networks gives back what the one before has left."""

from __future__ import annotations

import pytest

from tests.support import findings

COMPARED = """
import torch
from builders import build

def score(net, images):
    with torch.no_grad():
        return [{run}(image.cuda()).mean().item() for image in images]

def main(names, images):
    results = {{}}
    for name in names:
        bundle = build(name)
        net = bundle.net
        results[name] = score(net, images)
        {dropped}
        torch.cuda.empty_cache()
    return results
"""


@pytest.mark.parametrize("run", ["net", "net.forward_features"])
@pytest.mark.parametrize(("dropped", "count"), [("del net, bundle", 0), ("del bundle", 1), ("pass", 1)])
def test_a_network_that_is_deleted_leaves_its_memory(run: str, dropped: str, count: int) -> None:
    assert len(findings(COMPARED.format(run=run, dropped=dropped), "MEM06")) == count
