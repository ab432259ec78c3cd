"""TRAIN04: a test that puts its network into training mode itself means it, and a pass may be told what it is."""

from __future__ import annotations

import pytest

from tests.rules.train.evaluated_networks import SETUP
from tests.support import findings

ADAPTED = """\
def test(net, batches):
    {first}
    hits = 0
    with torch.no_grad():
        for x, y in batches:
            {before}
            hits += (net(x).argmax(1) == y).sum().item()
    return hits

net.train()
for epoch in range(3):
    train_epoch()
    print(test(net, test_loader))
net.eval()
"""


@pytest.mark.parametrize(
    ("first", "before", "count"),
    [
        ("net.train()", "pass", 0),
        ("pass", "net.train()", 0),
        ("pass", "pass", 1),
        ("if len(batches) > 3:\n        net.train()", "pass", 1),
        ("other = nn.Dropout()\n    other.train()", "pass", 1),
    ],
)
def test_training_mode_is_asked_for(first: str, before: str, count: int) -> None:
    assert len(findings(SETUP + ADAPTED.format(first=first, before=before), "TRAIN04")) == count


UNDONE = """\
def test(batches):
    {first}
    hits = 0
    for x, y in batches:
        net.train()
        with torch.no_grad():
            hits += (net(x).argmax(1) == y).sum().item()
    return hits

for epoch in range(3):
    net.train()
    train_epoch()
    print(test(test_loader))
"""


@pytest.mark.parametrize(("first", "count"), [("net.eval()", 1), ("pass", 0)])
def test_training_mode_that_undoes_evaluation_mode_is_not(first: str, count: int) -> None:
    assert len(findings(SETUP + UNDONE.format(first=first) + "net.eval()\n", "TRAIN04")) == count


TOLD = """\
class Sampled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, sampling=False):
        return self.drop(self.linear(x)) if sampling else self.linear(x)

class Told(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Sampled()
        self.heads = nn.ModuleDict({{"a": nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))}})
        self.linear = nn.Linear(4, 3)
        self.drop = nn.Dropout(0.5)
        self.norm = {norm}

    def embed(self, x):
        return self.norm(x)

    def dropped(self, x, training):
        return F.dropout(x, 0.5, training)

    def sampled(self, x, sampling=False):
        return self.drop(x) if sampling else x

    def forward(self, x, training=False):
        x = {first}
        if training:
            x = self.drop(x)
        return {result}

told = Told()
for epoch in range(3):
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(told(x, training=True), y).backward()
        opt.step()
    for x, y in test_loader:
        print(told({given}))
net.eval()
"""


@pytest.mark.parametrize(
    ("norm", "result", "given", "count"),
    [
        ("nn.Identity()", "x", "x", 0),
        ("nn.Identity()", "x", "x, training=False", 0),
        ("nn.Identity()", "x", "x, True", 1),
        ("nn.Identity()", "x", "x, epoch > 1", 1),
        ("nn.Identity()", "self.drop(x)", "x", 1),
        ("nn.BatchNorm1d(3)", "x", "x", 1),
        ("nn.Identity()", "F.dropout(x, 0.5, training)", "x", 0),
        ("nn.Identity()", "F.dropout(x, training=self.training)", "x", 1),
        ("nn.Identity()", "self.embed(x)", "x", 0),
        ("nn.BatchNorm1d(3)", "self.embed(x)", "x", 1),
        ("nn.Identity()", "self.dropped(x, training)", "x", 0),
        ("nn.Identity()", "self.dropped(x, self.training)", "x", 1),
        ("nn.Identity()", "self.sampled(x) + self.sampled(x, False)", "x", 0),
        ("nn.Identity()", "self.sampled(x) + self.sampled(x, True)", "x", 1),
        ("nn.Identity()", "self.inner(x)", "x", 0),
        ("nn.Identity()", "self.inner(x, training)", "x", 0),
        ("nn.Identity()", "self.inner(x, not training)", "x", 1),
        ("nn.Identity()", "sum(head(x) for head in self.heads.values())", "x", 1),
        ("nn.Identity()", "sum(head(x) for _, head in self.heads.items())", "x", 1),
        ("nn.Identity()", "torch.utils.checkpoint.checkpoint(self.heads['a'], x)", "x", 1),
    ],
)
def test_a_pass_that_leaves_out_its_layers_needs_no_switch(norm: str, result: str, given: str, count: int) -> None:
    first = "self.linear(x)" if "embed" in result else "self.norm(self.linear(x))"
    code = TOLD.format(norm=norm, first=first, result=result, given=given)
    assert len(findings(SETUP + code, "TRAIN04")) == count


GENERATED = """\
made = nn.Sequential(nn.Linear(4, 3), {layer}(3))
noise = torch.randn(8, 4)
for epoch in range(3):
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(made(torch.randn(2, 4)), y).backward()
        opt.step()
    with torch.no_grad():
        print(made({given}))

def check(net):
    net.eval()
"""


@pytest.mark.parametrize(
    ("layer", "given", "count"),
    [
        ("nn.BatchNorm1d", "noise", 0),
        ("nn.BatchNorm1d", "torch.randn(8, 4)", 0),
        ("nn.BatchNorm1d", "next(iter(test_loader))[0]", 1),
        ("nn.Dropout", "noise", 1),
    ],
)
def test_what_is_made_of_noise_is_normalised_as_in_training(layer: str, given: str, count: int) -> None:
    assert len(findings(SETUP + GENERATED.format(layer=layer, given=given), "TRAIN04")) == count


MADE = """\
def made(n, p{default}, normed=False):
    layers = [nn.Linear(n, 3)]
    if normed:
        layers.append(nn.BatchNorm1d(3))
    if p > 0:
        layers += [nn.Dropout(p)]
    return {result}

one = made({given})
for epoch in range(3):
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(one(x), y).backward()
        opt.step()
    for x, y in test_loader:
        print(one(x))
"""
DIRECT = "nn.Sequential(nn.Linear(n, 3), nn.Dropout(p), nn.BatchNorm1d(3) if normed else nn.Identity())"


@pytest.mark.parametrize("result", ["nn.Sequential(*layers)", DIRECT])
@pytest.mark.parametrize(
    ("default", "given", "count"),
    [
        ("=0.0", "4", 0),
        ("=0.5", "4", 1),
        ("=0.5", "4, 0.0", 0),
        ("=0.0", "4, p=0.1", 1),
        ("=0.0", "4, normed=True", 1),
        ("", "4, 0.0)\nother = made(4, 0.5", 0),
        ("", "4, 0.1)\nother = made(4, 0.5", 1),
    ],
)
def test_layers_that_a_function_is_told_to_leave_out(default: str, given: str, result: str, count: int) -> None:
    code = MADE.format(default=default, given=given, result=result)
    assert len(findings(SETUP + code, "TRAIN04")) == count


HANDED_IN = """\
def run(net, batches):
    hits = 0
    for x, y in batches:
        hits += (net(x).argmax(1) == y).sum().item()
    return hits

for epoch in range(3):
    train_epoch()
    print({calls})
"""


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        ("run(net, test_loader)", 1),
        ("run(net, batches=valid_loader)", 1),
        ("run(net, test_loader), run(net, train_loader)", 0),
        ("run(net, some)", 0),
    ],
)
def test_data_is_held_out_where_all_callers_say_so(calls: str, count: int) -> None:
    assert len(findings(SETUP + HANDED_IN.format(calls=calls), "TRAIN04")) == count


CHOSEN = """\
def show(args):
    if args.net == "wide":
        shown = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    else:
        shown = nn.Sequential(nn.Linear(4, 3), nn.Dropout())
    for x, y in test_loader:
        print(shown(x))

def check(net):
    net.eval()
"""


def test_which_of_two_networks_is_chosen_makes_no_difference() -> None:
    assert len(findings(SETUP + CHOSEN, "TRAIN04")) == 1
