"""MEM01 and MEM03: what is kept has no graph, or does not grow: it is asked for without, or there is but a handful."""

from __future__ import annotations

import pytest

from tests.support import findings

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

"""

SCORED = """\
def scores(net, x, grad: bool = {default}):
    if grad:
        out = net(x)
    else:
        with torch.no_grad():
            out = net(x)
    return F.log_softmax(out, -1).gather(-1, x.long())

def train(policy):
    opt = torch.optim.SGD(policy.parameters(), lr=0.1)
    kept = []
    for step, x in enumerate(DataLoader([torch.zeros(4) for _ in range(10)])):
        found = scores(policy, {arguments})
        found = found[:, -1:]
        loss = (scores(policy, x, grad=True) - found).mean()
        loss.backward()
        kept.append(found)
        if step % 4 == 0:
            opt.step()
            opt.zero_grad()
            print(torch.stack(kept).mean())

train(nn.Linear(4, 4))
"""


@pytest.mark.parametrize(
    ("default", "arguments", "count"),
    [
        ("False", "x", 0),
        ("False", "x, grad=False", 0),
        ("True", "x, False", 0),
        ("True", "x", 1),
        ("False", "x, True", 1),
        ("False", "x, grad=bool(step)", 1),
    ],
)
def test_a_network_that_runs_with_gradients_where_an_argument_says_so(default: str, arguments: str, count: int) -> None:
    code = SETUP + SCORED.format(default=default, arguments=arguments)
    assert len(findings(code, "MEM01")) == count


TOLD_APART = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
for x in DataLoader([torch.randn(4) for _ in range(10)]):
    opt.zero_grad()
    loss = net(x).mean()
    loss.backward()
    opt.step()
    history.append({kept})
print(history)
"""


@pytest.mark.parametrize(
    ("kept", "count"),
    [
        ("{'total': loss.item() if isinstance(loss, torch.Tensor) else loss}", 0),
        ("loss.item() if isinstance(loss. torch.Tensor) else loss", 0),
        ("loss if not torch.is_tensor(loss) else float(loss)", 0),
        ("loss.item() if x.sum() > 3 else loss", 1),
        ("loss if isinstance(loss, torch.Tensor) else None", 1),
    ],
)
def test_what_is_no_tensor_where_a_test_says_so(kept: str, count: int) -> None:
    assert len(findings(SETUP + TOLD_APART.replace("{kept}", kept), "MEM01")) == count


FRAMES = """\
class Learner:
    def __init__(self, opt):
        self.opt = opt
        self.back = nn.Linear(4, 4).cuda()
        self.loss = nn.L1Loss(reduction="none")

    def measure(self, inputs, outputs):
        {before}
        found = {made}
        for frame in {over}:
            apart = self.loss(self.back(outputs[frame]), inputs["color"])
            {keep}
        print({read})

    def evaluate(self, batches):
        for x in batches:
            self.measure(x, x)
"""
LIST = {"made": "[]", "keep": "found.append(apart * 0.9)", "read": "torch.cat(found, 1).mean()"}


@pytest.mark.parametrize(
    ("over", "before", "count"),
    [
        ("self.opt.frames[1:]", "pass", 0),
        ("('left', 'right')", "pass", 0),
        ("frames", "frames = list(self.opt.frames)", 0),
        ("self.frames()", "pass", 1),
        ("range(1000)", "pass", 1),
    ],
)
def test_a_list_of_a_handful_of_scales_or_frames_does_not_grow(over: str, before: str, count: int) -> None:
    assert len(findings(SETUP + FRAMES.format(over=over, before=before, **LIST), "MEM01")) == count


PLACES = """\
class Learner:
    def __init__(self, opt):
        self.opt = opt
        self.seen = {}
        self.net = nn.Linear(4, 4).cuda()

    def evaluate(self, batches):
        for i, x in enumerate(batches):
            for frame in self.opt.frames:
                self.seen[{key}] = self.net(x.cuda())
        print(len(self.seen), {read}.mean().item())
"""


@pytest.mark.parametrize(("key", "count"), [('"points", frame', 0), ("i, frame", 1)])
def test_places_for_a_handful_of_keys_are_written_again_and_again(key: str, count: int) -> None:
    code = PLACES.replace("{key}", key).replace("{read}", "self.seen[0]")
    assert len(findings(SETUP + code, "MEM01")) == count


PIECES = """\
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in DataLoader([torch.randn(4) for _ in range(10)]):
    loss = 0
    for t in range({begin}3):
        out = net(x)
        loss = loss + out.mean()
        if t == {first}:
            seen = out
        else:
            seen = torch.cat((seen, out), -1)
    print(seen.mean().item())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(("begin", "first", "count"), [("", "0", 0), ("0, ", "0", 0), ("", "2", 1), ("1, ", "0", 1)])
def test_the_first_iteration_of_an_inner_loop_begins_anew(begin: str, first: str, count: int) -> None:
    assert len(findings(SETUP + PIECES.format(begin=begin, first=first), "MEM01")) == count


METER = """\
from captions import load

class Meter:
    def __init__(self):
        self.sum = 0

    def update(self, value, n=1):
        self.sum += value * n

class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.correct = torch.tensor(0)

    def forward(self, parts):
        self.correct += parts["{key}"]
        return self.correct

def step(net, x):
    out = net(x)
    return {"loss": out.mean(), "correct": (out > 0).sum()}

meter, running = Meter(), Running()
net = nn.Linear(4, 4)
decoder = load("decoder")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in DataLoader([torch.randn(4) for _ in range(10)]):
    opt.zero_grad()
    parts = step(net, x)
    scores, lengths, order = decoder(net(x))
    parts["loss"].backward()
    opt.step()
    running(parts)
    meter.update(@)
print(meter.sum)
"""


@pytest.mark.parametrize(("given", "count"), [("1, sum(lengths)", 0), ("parts['loss']", 1)])
def test_numbers_beside_tensors_that_have_a_graph(given: str, count: int) -> None:
    assert len(findings(SETUP + METER.replace("@", given).replace("{key}", "correct"), "MEM03")) == count


def test_an_entry_of_a_dict_is_detached_in_the_dict() -> None:
    (found,) = findings(SETUP + METER.replace("@", "1").replace("{key}", "loss"), "MEM03")
    assert "`parts.detach()`" not in found.message
    assert "detach what is in it" in found.message


def test_what_a_unit_test_collects_ends_with_it() -> None:
    lines = TOLD_APART.replace("{kept}", "loss").splitlines()
    code = SETUP + "\n".join(["def test_collects():", *(f"    {line}" for line in lines)]) + "\n"
    assert len(findings(code, "MEM01", path="check_net.py")) == 1
    assert findings(code, "MEM01", path="tests/test_net.py") == []


def test_a_program_that_lies_among_the_tests_is_no_test() -> None:
    code = SETUP + TOLD_APART.replace("{kept}", "loss")
    assert len(findings(code, "MEM01", path="tests/planted/train.py")) == 1


CACHED = """
class Cached(nn.Module):
    def score(self, reps, train):
        losses = []
        for rep in reps:
            loss = rep.square().mean() * 2
            if train:
                loss.backward()
                {cut}
            losses.append(loss)
        return sum(losses)

    def forward(self, x):
        reps = x.detach().requires_grad_().split(1)
        if torch.is_grad_enabled():
            return self.score(reps, True).detach().requires_grad_()
        return self.score(reps, False)

cached = Cached()
for x in torch.ones(100, 4, 3):
    cached(x)
"""


@pytest.mark.parametrize(("cut", "count"), [("loss = loss.detach()", 0), ("pass", 1)])
def test_a_loss_is_detached_where_it_is_sent_backward(cut: str, count: int) -> None:
    assert len(findings(SETUP + CACHED.format(cut=cut), "MEM01")) == count


def test_a_loss_that_is_scaled_where_it_is_sent_backward_keeps_its_nodes() -> None:
    [found] = findings(SETUP + CACHED.format(cut="loss *= 2"), "MEM01")
    assert "graph nodes" in found.message


COLLECTED = """\
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for step, x in enumerate(DataLoader([torch.randn(4) for _ in range(10)])):
    loss = net(x).mean()
    {freed}
    losses.append(loss)
    if step % 4 == 0:
        {update}
    if step % 100 == 0:
        {show}
"""
UPDATE = "opt.step()\n        opt.zero_grad()\n        "


@pytest.mark.parametrize(
    ("freed", "update", "show", "count"),
    [
        ("loss.backward()", UPDATE + "losses.clear()", "pass", 0),
        ("loss.backward()", UPDATE + "losses = []", "pass", 0),
        ("loss.backward()", UPDATE + "print(losses[-1])", "print(len(losses))", 1),
        ("loss.backward()", "opt.step()", "losses = []", 1),
        ("loss.backward(retain_graph=True)", "print(torch.stack(losses).mean())", "pass", 1),
    ],
)
def test_a_list_that_each_update_empties_does_not_grow(freed: str, update: str, show: str, count: int) -> None:
    code = COLLECTED.format(freed=freed, update=update, show=show)
    assert len(findings(SETUP + code, "MEM01")) == count


def test_a_sum_that_each_update_begins_anew_is_cut_all_the_same() -> None:
    code = COLLECTED.format(freed="loss.backward()", update=UPDATE + "total = 0", show="print(total)")
    summed = code.replace("losses = []", "total = 0").replace("losses.append(loss)", "total += loss")
    assert len(findings(SETUP + summed, "MEM02")) == 1
