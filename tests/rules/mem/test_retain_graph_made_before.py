"""MEM04: what was computed before a loop, whose passes all go back through it, keeps its graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.support import findings

PASSES = """
import torch
from functools import partial
from torch import nn

class Prior:
    def __init__(self, w):
        self.weights = torch.softmax(w, 0)

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(3))
        self.powers = self.scale.exp()

    def forward(self, x):
        return x * self.powers

class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.known = None

    @property
    def powers(self):
        if self.known is None:
            self.known = self.layer.weight.exp()
        return self.known

    def forward(self, x):
        return x * self.powers

def train(enc, x, w):
    net = nn.Linear(3, 3)
    {made}
    for step in range(3):
        loss = {loss}
        loss.backward(retain_graph=True)
"""


def run(code: str) -> None:
    names: dict[str, Any] = {}
    exec(code, names)
    names["train"](nn.Tanh(), torch.rand(3, 3, requires_grad=True), nn.Parameter(torch.rand(3)))


SHARED = [
    ("parts = []\n    for row in x:\n        parts.append(net(row).tanh())", "sum(part.sum() for part in parts)"),
    ("parts = []\n    for power in range(2, 4):\n        parts.append(w ** power)", "torch.stack(parts).sum()"),
    ("parts = {}\n    parts['a'] = net(x).tanh()", "sum(part.sum() for part in parts.values())"),
    ("parts = torch.zeros(3, 3)\n    for k in range(3):\n        parts[k] = net(x[k]).tanh()", "parts.sum()"),
    ("parts = [enc(x)]", "parts[0].sum()"),
    ("part = enc(x)", "part.sum()"),
    ("part = w.gather(0, torch.tensor([0, 2]))", "part.sum()"),
    ("part = torch.rand(3, requires_grad=True).cumprod(0)", "part.sum()"),
    ("part = torch.rand(3, requires_grad=True).masked_select(w > -1)", "part.sum()"),
    ("prior = Prior(nn.Parameter(torch.rand(3)))", "(net(x) * prior.weights).sum()"),
    ("scaled = Scaled()", "scaled(x).sum()"),
    ("part = torch.softmax(net.weight, 0)", "part.sum()"),
    ("part = torch.softmax(net.weight, 0)\n    part = torch.tanh(part)", "(part * part).sum()"),
    ("parts = [layer.weight.exp() for layer in [net, net]]", "sum((x @ part).sum() for part in parts)"),
    ("parts = {'a': net.weight * net.weight}", "parts['a'].sum()"),
    ("kept = Kept()", "kept(x).sum()"),
    ("part = Kept().powers", "part.sum()"),
    ("part = net(x).tanh()\n    weigh = lambda rows: (rows * part).sum()", "weigh(x)"),
    ("part = net(x).tanh()\n    weigh = partial(torch.mul, part)", "weigh(x).sum()"),
]


@pytest.mark.parametrize(("made", "loss"), SHARED)
def test_all_passes_go_back_through_what_was_computed_before(made: str, loss: str) -> None:
    code = PASSES.format(made=made, loss=loss)
    assert not findings(code, "MEM04")
    run(code)
    with pytest.raises(RuntimeError, match="second time"):
        run(code.replace("retain_graph=True", ""))


def test_what_only_the_first_round_of_the_loop_computes_is_shared_by_the_others() -> None:
    made = "part = None"
    code = PASSES.format(made=made, loss="part.sum()").replace(
        "        loss = ", "        if part is None:\n            part = net(x).tanh()\n        loss = "
    )
    assert not findings(code, "MEM04")
    run(code)
    with pytest.raises(RuntimeError, match="second time"):
        run(code.replace("retain_graph=True", ""))


OWN = [
    ("parts = []\n    for row in x:\n        parts.append(row.detach())", "sum(net(part).sum() for part in parts)"),
    ("part = torch.rand(3, requires_grad=True).to(x.device)", "net(part).tanh().sum()"),
    ("part = w.view(3).clone()", "net(part).tanh().sum()"),
    ("part = x.detach().cumprod(0)", "net(part).tanh().sum()"),
    ("weigh = lambda rows: (net(rows) * x.detach()).sum()", "weigh(x.detach())"),
    ("part = torch.zeros(net.out_features)", "(net(x.detach()) + part).tanh().sum()"),
    ("part = net.weight.detach() * 2", "(net(x.detach()) + part).tanh().sum()"),
]


@pytest.mark.parametrize(("made", "loss"), OWN)
def test_what_holds_nothing_that_a_pass_lets_go_needs_no_graph(made: str, loss: str) -> None:
    code = PASSES.format(made=made, loss=loss)
    assert len(findings(code, "MEM04")) == 1
    run(code.replace("retain_graph=True", ""))


REVERSIBLE = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def back(self, x, dy, {given}):
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = self.net(x, **{given})
            torch.autograd.backward(y, dy, retain_graph=True)
        return x.grad
"""
RUN = """
class Net(nn.Module):
    def forward(self, x, keys):
        return x * keys.exp().sum()

def run():
    made = dict(keys=nn.Linear(2, 2)(torch.rand(2)).tanh())
    for block in [Block(Net()), Block(Net())]:
        block.back(torch.rand(2), torch.ones(2), made)
"""


def test_arguments_that_are_handed_in_may_hold_what_other_blocks_go_back_through() -> None:
    code = REVERSIBLE.format(given="args")
    assert not findings(code, "MEM04")
    assert findings(REVERSIBLE.format(given="batch"), "MEM04")
    names: dict[str, Any] = {}
    exec(code + RUN, names)
    names["run"]()
    exec((code + RUN).replace(", retain_graph=True", ""), names)
    with pytest.raises(RuntimeError, match="second time"):
        names["run"]()


LOSSES = """
import torch
from torch import nn

class Trainer:
    def step(self, output, other):
        first = {first}
        first.backward(retain_graph=True)
        {second}.backward()

    def train(self, net: nn.Module, loader):
        for x in loader:
            self.step(net(x), net(x))
"""


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("output.encoder_loss", "output.decoder_loss", 0),
        ("output['encoder']", "output['decoder']", 0),
        ("output[0]", "output[1].sum()", 0),
        ("output.mean", "torch.exp(output.scale).sum()", 0),
        ("output.encoder_loss", "other.decoder_loss", 1),
    ],
)
def test_parts_of_what_is_handed_in_may_have_one_graph(first: str, second: str, count: int) -> None:
    assert len(findings(LOSSES.format(first=first, second=second), "MEM04")) == count


TOGETHER = """
import torch
from torch import nn

class Trainer:
    def losses(self, x):
        first = self.net(x).sum()
        return first, {second}

    def step(self, x):
        first, second = self.losses(x)
        first.backward(retain_graph=True)
        second.backward()
        self.opt.step()
"""
EACH = """
import torch
from torch import nn

class Actors:
    def slopes(self, groups):
        scores, chosen = [], []
        for group in groups:
            actions, score = self.build(group)
            scores.append(score)
            chosen.append(actions)
        for score, actions in zip(scores, chosen):
            for action in actions:
                print(torch.autograd.grad(outputs={score}, inputs=action, retain_graph=True)[0])
"""


def test_what_comes_out_of_one_call_has_one_graph() -> None:
    for second in ("first - self.other(x).mean()", "self.other(x).mean()"):
        assert not findings(TOGETHER.format(second=second), "MEM04")


@pytest.mark.parametrize("score", ["score.mean()", "-score.mean()", "2 * score.sum()", "-(score.mean() * 2)"])
def test_each_iteration_goes_back_through_a_score_that_an_outer_loop_brings(score: str) -> None:
    assert not findings(EACH.format(score=score), "MEM04")


KEPT = """
import torch

class Jacobian:
    def __init__(self, x: torch.Tensor, f: torch.Tensor):
        self.x = x
        self.f = f
        self.net = torch.nn.Linear(3, 1)

    def times(self, v):
        x = torch.ones(3, requires_grad=True)
        {first}
        return torch.autograd.grad({outputs}, {inputs}, v, retain_graph=True)[0]
"""


@pytest.mark.parametrize(
    ("first", "outputs", "inputs", "count"),
    [
        ("pass", "self.f", "self.x", 0),
        ("outputs, inputs = [self.f], [self.x]", "outputs", "inputs", 0),
        ("f, inputs = self.f, [self.x]", "(f,)", "inputs", 0),
        ("f = self.net(x)", "f", "x", 1),
    ],
)
def test_each_call_of_a_method_goes_through_what_its_object_was_handed(
    first: str, outputs: str, inputs: str, count: int
) -> None:
    assert len(findings(KEPT.format(first=first, outputs=outputs, inputs=inputs), "MEM04")) == count


ROWS = """
import torch

def rowwise(model, criterion, x, targets, whole):
    def rows(tensor):
        return tensor.chunk(tensor.size(0))

    {made}
    if whole:
        predicted = [predicted]
    else:
        predicted = rows(predicted)
    for row, target in zip(predicted, targets):
        loss = criterion({given}, target)
        model.zero_grad()
        loss.backward(retain_graph=True)
"""


@pytest.mark.parametrize(
    ("made", "given", "count"), [("predicted = model(x)", "row", 0), ("predicted = x", "model(row)", 1)]
)
def test_rows_of_one_graph_go_back_one_by_one(made: str, given: str, count: int) -> None:
    assert len(findings(ROWS.format(made=made, given=given), "MEM04")) == count
