"""MEM04: a tensor that a graph begins with holds none; what a network makes of one does."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings

DISTILLED = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable

def train(net, teacher, batches, opt, temperature):
    for x, y in batches:
        opt.zero_grad()
        output = {output}
        loss = F.mse_loss(output, y)
        soft = teacher(x).detach()
        if temperature > 1:
            softened = net(x) / temperature
        else:
            softened = output
        distilled = F.mse_loss(softened, soft)
        distilled.backward(retain_graph=True)
        {again}
        opt.step()

net = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
train(net, nn.Linear(4, 4), [(torch.randn(3, 4), torch.randn(3, 4))] * 2, opt, 1)
"""
WRAPPED = [
    "net(Variable(x))",
    "torch.relu(net(x.requires_grad_()))",
    "net(x.clone().requires_grad_(True)).float()",
    "net(x).requires_grad_()",
]


@pytest.mark.parametrize("output", WRAPPED)
def test_what_a_network_makes_of_a_leaf_has_a_graph_that_others_share(output: str) -> None:
    code = DISTILLED.format(output=output, again="loss.backward()")
    assert not findings(code, "MEM04")
    exec(code, {})
    with pytest.raises(RuntimeError, match="second time"):
        exec(code.replace("retain_graph=True", ""), {})


def test_a_leaf_in_a_list_says_nothing_of_what_stands_beside_it() -> None:
    beside = DISTILLED.replace("output = {output}", "parts = {output}").replace("output", "parts[1]")
    code = beside.replace("{parts[1]}", "[Variable(x), net(x)]").format(again="loss.backward()")
    assert not findings(code, "MEM04")
    exec(code, {})


@pytest.mark.parametrize("output", WRAPPED)
def test_a_graph_that_nothing_goes_through_again_is_kept_for_nothing(output: str) -> None:
    code = DISTILLED.format(output=output, again="print(loss.item())")
    assert len(findings(code, "MEM04")) == 1
    exec(code.replace("retain_graph=True", ""), {})


LEAF = """
import torch
from torch.autograd import Variable

def start():
    return torch.zeros(3, requires_grad=True)

def descend(target, steps):
    point = {leaf}
    for _ in range(steps):
        error = ((point - target) ** 2).sum()
        error.backward(retain_graph=True)
        with torch.no_grad():
            point -= 0.1 * point.grad
            point.grad = None
    return point

result = descend(torch.ones(3), 5)
"""


@pytest.mark.parametrize(
    "leaf",
    [
        "torch.zeros(3, requires_grad=True)",
        "torch.zeros(3).requires_grad_()",
        "Variable(torch.zeros(3), requires_grad=True)",
        "torch.nn.Parameter(torch.zeros(3))",
        "start()",
        "start() if steps else torch.zeros(3, requires_grad=True)",
    ],
)
def test_a_leaf_from_before_the_loop_holds_no_graph(leaf: str) -> None:
    code = LEAF.format(leaf=leaf)
    assert len(findings(code, "MEM04")) == 1
    before: dict[str, torch.Tensor] = {}
    after: dict[str, torch.Tensor] = {}
    exec(code, before)
    exec(code.replace("retain_graph=True", ""), after)
    assert torch.equal(before["result"], after["result"])
