"""TRAIN11: a checkpoint of which an entry is asked as a network is may hold the whole network."""

from __future__ import annotations

import pytest

from tests.support import findings

LOADING = """
import torch

def resume(path, device, make):
    checkpoint = torch.load(path)
    net = {net}
    optimizer = torch.optim.Adam(net.parameters())
    optimizer.load_state_dict(checkpoint["optimizer"])
    return net, checkpoint["epoch"], checkpoint["loss"].item()
"""


@pytest.mark.parametrize(
    ("net", "is_known"),
    [
        ('checkpoint["model"].to(device)', False),
        ('checkpoint["ema"].float()', False),
        ('make(checkpoint["best"].cuda_net)', False),
        ('make(checkpoint["weights"].to(device))', True),
        ('make(checkpoint["losses"].cpu(), checkpoint["x"].shape)', True),
        ('make(len(checkpoint["model"].keys()))', True),
        ("make()", True),
    ],
)
def test_a_whole_network_needs_more_than_weights(net: str, is_known: bool) -> None:
    (finding,) = findings(LOADING.format(net=net), "TRAIN11")
    assert ("Pass `weights_only=True`: it is all" in finding.message) is is_known
