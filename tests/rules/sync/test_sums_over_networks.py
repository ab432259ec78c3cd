"""SYNC01, SYNC02: numbers of networks, each of which may lie on a device of its own, are not put together on one."""

from __future__ import annotations

import pytest

from tests.support import fixed

LOSSES = """
import torch
import torch.nn.functional as F

def losses(models: list[torch.nn.Module], batches):
    {before}
    for model{with_batch} in {over}:
        {inside}
        for x, y in batches:
            device = next(model.parameters()).device
            loss = F.mse_loss(model(x.to(device)), y.to(device))
            loss.backward()
            total += loss.item()
        print(total)

losses([torch.nn.Linear(3, 1).cuda()], [(torch.randn(4, 3), torch.randn(4, 1))])
"""


@pytest.mark.parametrize(
    ("before", "inside", "is_fixed"),
    [("total = 0.0", "pass", False), ("pass", "total = 0.0", True)],
)
@pytest.mark.parametrize(("with_batch", "over"), [("", "models"), (", place", "zip(models, range(9))")])
def test_a_sum_over_networks(before: str, inside: str, with_batch: str, over: str, is_fixed: bool) -> None:
    code = LOSSES.format(before=before, inside=inside, with_batch=with_batch, over=over)
    assert ("loss.item()" not in fixed(code, "SYNC01")) is is_fixed


TWO = """
import torch

def train(first, second, batches, opt):
    first, second, total = first.to("cuda:0"), second.to("{device}"), 0.0
    for x in batches:
        one, two = first(x.to("cuda:0")).mean(), second(x.to("{device}")).mean()
        opt.zero_grad()
        one.backward()
        two.backward()
        opt.step()
        {read}
    return total
"""


@pytest.mark.parametrize("read", ["print(one.item(), two.item())", "total += one.item()"])
@pytest.mark.parametrize(("device", "is_fixed"), [("cuda:1", False), ("cuda:0", True)])
def test_two_networks_on_two_devices(read: str, device: str, is_fixed: bool) -> None:
    code = TWO.format(read=read, device=device)
    assert (fixed(code, "SYNC01", "SYNC02").lstrip() != code.lstrip()) is is_fixed
