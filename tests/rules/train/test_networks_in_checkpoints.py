"""TRAIN11: a checkpoint of which an entry is asked as a network is may hold the whole network."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

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


EDITOR = """
import torch
from torch import nn

class Editor(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def {saves}(self, **options):
        return {{**super().state_dict(**options), "config": self.net.config}}

    def {loads}(self, state, strict=True):
        self.net.config = state.pop("config")
        return super().load_state_dict(state, strict)

def resume(net, path):
    editor = Editor(net).cuda()
    editor.load_state_dict(torch.load(path))
    return editor
"""


@pytest.mark.parametrize(
    ("saves", "loads", "is_fixed"), [("state_dict", "load_state_dict", False), ("state_as_dict", "restore", True)]
)
def test_the_state_of_a_module_that_has_its_own_way_of_loading_may_hold_more(
    saves: str, loads: str, is_fixed: bool
) -> None:
    code = EDITOR.format(saves=saves, loads=loads)
    assert len(findings(code, "TRAIN11")) == 1
    assert ("weights_only=True" in fixed(code, "TRAIN11", unsafe=True)) is is_fixed
