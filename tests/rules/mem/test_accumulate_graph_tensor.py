"""MEM02: a running sum keeps the autograd graph of every step."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings, fixed

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
crit = nn.MSELoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [(torch.randn(2, 4), torch.randn(2, 1)) for _ in range(3)]
"""

STEP = """\
    opt.zero_grad()
    pred = model(x)
    loss = crit(pred, y)
    loss.backward()
    opt.step()
"""


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "MEM02")]


def marked(code: str) -> list[int]:
    return [number for number, line in enumerate(code.splitlines(), 1) if "# here" in line]


VARIANTS = {
    "a running loss": "running = 0.0\nfor x, y in loader:\n"
    + STEP
    + "    running += loss  # here\nprint(running / 3)\n",
    "before backward": """\
running = 0.0
for x, y in loader:
    opt.zero_grad()
    loss = crit(model(x), y)
    running += loss  # here
    loss.backward()
    opt.step()
print(running / len(loader))
""",
    "a sum that nobody reads, starting anew in each round": """
for epoch in range(2):
    spread, outs = 0, []
    for x, y in loader:
        out = model(x)
        outs.append(out)
        spread += out.var(0).mean()  # here
    loss = torch.cat(outs).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "weighted": "total = 0\nfor x, y in loader:\n" + STEP + "    total += loss * x.size(0)  # here\nprint(total)\n",
    "spelled out": "total = 0\nfor x, y in loader:\n"
    + STEP
    + "    total = total + loss / len(loader)  # here\nprint(total)\n",
    "a tensor accumulator in place": "acc = torch.zeros(())\nfor x, y in loader:\n"
    + STEP
    + "    acc += loss  # here\nprint(acc.item())\n",
    "a value of a dict": 'stats = {"loss": 0.0}\nfor x, y in loader:\n'
    + STEP
    + '    stats["loss"] += loss  # here\nprint(stats["loss"].item())\n',
    "an attribute": """\
class Trainer:
    def __init__(self):
        self.epoch_loss = 0.0

    def step(self, x, y):
        opt.zero_grad()
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
        self.epoch_loss += loss  # here

trainer = Trainer()
for x, y in loader:
    trainer.step(x, y)
print(trainer.epoch_loss)
""",
    "a variable of the surrounding function": """\
def fit():
    tot = 0.0

    def step(x, y):
        nonlocal tot
        opt.zero_grad()
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
        tot += loss  # here

    for x, y in loader:
        step(x, y)
    print(tot)

fit()
""",
    "two parts": """\
tot_d = tot_g = 0.0
for x, y in loader:
    out = model(x)
    d_loss = crit(out, y)
    g_loss = out.abs().mean()
    opt.zero_grad()
    (d_loss + g_loss).backward()
    opt.step()
    tot_d += d_loss  # here
    tot_g += g_loss  # here
print(tot_d, tot_g)
""",
    "a moving average": "ema = 0.0\nfor x, y in loader:\n"
    + STEP
    + "    ema = 0.98 * ema + 0.02 * loss  # here\nprint(ema)\n",
    "a term from elsewhere, weighted by an attribute": """\
from losses import entropy

class Agent:
    entropy_coef = 0.1

    def update(self):
        total = 0.0
        for x, y in loader:
            out = model(x)
            action_loss = crit(out, y)
            entropy_loss = entropy(out)
            opt.zero_grad()
            (action_loss - entropy_loss * self.entropy_coef).backward()
            opt.step()
            total += entropy_loss  # here
        return float(total)

Agent().update()
""",
    "the best so far of an evaluation": """\
best = None
for x, y in loader:
    loss = crit(model(x), y)
    if best is None or loss < best:
        best = loss  # here
print(best)
""",
    "a running maximum": """\
worst = torch.zeros(2, 1)
for x, y in loader:
    worst = torch.max(worst, F.mse_loss(model(x), y, reduction="none"))  # here
print(worst)
""",
    "a running minimum, the other way round": """\
least = torch.ones(2, 1)
for x, y in loader:
    least = torch.minimum(F.mse_loss(model(x), y, reduction="none"), least)  # here
print(least)
""",
    "a metric of the output": "mae = 0.0\nfor x, y in loader:\n"
    + STEP
    + "    mae += (pred - y).abs().mean()  # here\nprint(mae / 3)\n",
    "a sum over the epoch that is reset while printing": "running = 0.0\nfor i, (x, y) in enumerate(loader):\n"
    + STEP
    + """\
    running += loss  # here
    if i % 100 == 99:
        print(running / 100)
        running = 0.0
""",
    "arguments of a training function": """\
def train(net, batches, loss_fn, optimizer):
    total_loss = 0
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()
        total_loss += loss  # here
    return total_loss / len(batches)
""",
    "an evaluation loop with gradients": """\
def evaluate(net):
    net.eval()
    test_loss = 0
    for x, y in loader:
        test_loss += F.mse_loss(net(x), y)  # here
    test_loss /= len(loader)
    print(f"loss {test_loss:.4f}")

evaluate(model)
""",
    "an evaluation whose callers are elsewhere": """\
def evaluate(net, val_loader, loss_fn):
    net.eval()
    val_loss = 0
    for x, y in val_loader:
        val_loss += loss_fn(net(x), y)  # here
    return val_loss / len(val_loader)
""",
    "a loss that is handed to a logger": """\
from project.logs import log_epoch

class Trainer:
    def fit(self, net, scheduler):
        total = 0.0
        for x, y in loader:
            total += crit(net(x), y)  # here
        log_epoch(total)
        scheduler.step(total)
""",
    "scaled backward through a wrapper": """\
from accelerate import Accelerator

accelerator = Accelerator()
model, opt = accelerator.prepare(model, opt)
total_loss = 0
for x, y in loader:
    loss = crit(model(x), y)
    accelerator.backward(loss)
    opt.step()
    opt.zero_grad()
    total_loss += loss  # here
print(total_loss)
""",
}

LOOK_ALIKES = {
    "votes on one batch": """\
model.eval()
for x, y in loader:
    pred = 0
    for turn in range(10):
        pred += model(x + turn)
    print((pred / 10).argmax(1))
""",
    "several updates from one batch": """\
for x, y in loader:
    total = 0.0
    for repeat in range(3):
        opt.zero_grad()
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
        total += loss
    print(total.item() / 3)
""",
    "the accumulator is what is backpropagated": """\
for x, y in loader:
    loss = 0
    for out in (model(x), model(2 * x)):
        loss += crit(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a sum over the chunks of a batch, one update for all": """\
for x, y in loader:
    opt.zero_grad()
    whole = 0
    for part, target in zip(x.chunk(2), y.chunk(2)):
        loss = crit(model(part), target) / 2
        loss.backward()
        whole += loss
    opt.step()
    print(whole.item())
""",
    "a regularisation sum": """\
for x, y in loader:
    reg = 0.0
    for p in model.parameters():
        reg += p.norm()
    loss = crit(model(x), y) + 1e-4 * reg
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "micro-batches and one backward": """\
total = 0.0
for x, y in loader:
    total = total + crit(model(x), y) / len(loader)
opt.zero_grad()
total.backward()
opt.step()
""",
    "the best loss of the training, whose buffers are freed": "best = None\nfor x, y in loader:\n"
    + STEP
    + "    if best is None or loss < best:\n        best = loss\nprint(best)\n",
    "a maximum over the parts of one loss": """\
for x, y in loader:
    worst = torch.zeros(())
    for part, wanted in zip(x.split(1), y.split(1)):
        worst = torch.max(worst, crit(model(part), wanted))
    opt.zero_grad()
    worst.backward()
    opt.step()
""",
    "the larger of two tensors": """\
for x, y in loader:
    out = torch.max(model(x), y)
    print(out)
""",
    "without gradients": """\
total = 0.0
with torch.no_grad():
    for x, y in loader:
        total += crit(model(x), y)
print(total)
""",
    "integers": "n = correct = 0\nfor x, y in loader:\n"
    + STEP
    + """\
    n += y.size(0)
    correct += (pred.argmax(1) == y.argmax(1)).sum()
    _, best = pred.max(1)
    correct += best.eq(y[:, 0]).sum()
print(correct / n)
""",
    "an auxiliary term": """\
for x, y in loader:
    out = model(x)
    loss = crit(out, y)
    aux = out.abs().mean()
    loss += 0.1 * aux
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a window of truncated backpropagation": """\
cell = nn.RNNCell(4, 8)
for xs, ys in [(torch.randn(12, 2, 4), torch.randn(12, 2, 8))]:
    h = torch.zeros(2, 8)
    loss_seq = 0.0
    for t in range(12):
        h = cell(xs[t], h)
        loss_seq += crit(h, ys[t])
        if t % 4 == 3:
            loss_seq.backward()
            loss_seq, h = 0.0, h.detach()
""",
    "already a number": "total = 0.0\nfor x, y in loader:\n"
    + STEP
    + """\
    total += loss.item()
    total += float(loss)
    total += loss.detach()
    total += loss.data
    loss = loss.item()
    total += loss
print(total)
""",
    "the loss of one step": """\
for x, y in loader:
    out = model(x)
    total = crit(out, y)
    opt.zero_grad()
    total.backward()
    opt.step()
    shown = 0.0
    shown += total
    print(shown)
""",
    "returned to code that nobody here knows": """\
def objective(net, batches):
    total = 0.0
    for x, y in batches:
        total += F.mse_loss(net(x), y)
    return total
""",
    "a loss module": """\
class PyramidLoss(nn.Module):
    def forward(self, outputs, target):
        total = 0.0
        for output in outputs:
            total += F.mse_loss(output, target)
        return total
""",
    "a residual stream": """\
blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
for x, y in loader:
    h = x
    for block in blocks:
        h = h + block(h)
    loss = h.mean()
    loss.backward()
""",
    "a sampler that walks": """\
def sample(net, x):
    for _ in range(10):
        x = x - 0.1 * net(x)
    return x

print(sample(nn.Linear(4, 4), torch.randn(2, 4)))
""",
    "a meter that is fed numbers": """\
class AverageMeter:
    def __init__(self):
        self.sum = 0.0

    def update(self, value, n=1):
        self.sum += value * n

meter = AverageMeter()
for x, y in loader:
    opt.zero_grad()
    loss = crit(model(x), y)
    loss.backward()
    opt.step()
    meter.update(loss.item(), x.size(0))
print(meter.sum)
""",
    "gradient norms": """\
total_norm = 0.0
for x, y in loader:
    opt.zero_grad()
    crit(model(x), y).backward()
    for p in model.parameters():
        total_norm += p.grad.data.norm(2) ** 2
        total_norm += p.grad.norm(2) ** 2
print(total_norm)
""",
    "the graph is kept for more": """\
total = 0.0
for x, y in loader:
    loss = crit(model(x), y)
    loss.backward(retain_graph=True)
    total += loss
total.backward()
""",
    "weights that are counted": """\
count = 0
for p in model.parameters():
    count += p.numel()
print(count)
""",
    "terms of one step that are also printed": """\
for x, y in loader:
    out = model(x)
    loss = distance = 0.0
    for column in range(1):
        term = F.mse_loss(out[:, column], y[:, column])
        loss += term
        distance += 2 * (1 - term)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(distance.item())
""",
    "replaced before anyone reads it": """\
def train(x, y, steps, masked):
    loss = 0.0
    if not masked:
        for step in range(steps):
            loss += crit(model(x), y)
    loss = crit(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "turned into a number in the same iteration": """\
k = 0.0
for x, y in loader:
    loss = crit(model(x), y) - k
    opt.zero_grad()
    loss.backward()
    opt.step()
    k = k + 0.1 * model(x).mean()
    k = k.item()
""",
    "log-likelihoods of what was accumulated": """\
from project.flows import Flow

flow = Flow()
z = torch.zeros(2, 1)
for x, y in loader:
    z = z + model(x)
loss = -flow.log_prob(z).mean()
opt.zero_grad()
loss.backward()
opt.step()
""",
    "set anew by an inner loop": """\
right = 0
for epoch in range(3):
    for x, y in loader:
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    for x, y in loader[:1]:
        out = model(x)
    loss += crit(out, y)
    print(loss.item())
""",
    "the training function returned a number": """\
def train():
    total = 0.0
    for x, y in loader:
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total

summed = 0.0
for epoch in range(3):
    summed += train()
print(summed)
""",
    "a metric under no_grad in another function": """\
@torch.no_grad()
def error(pred, y):
    return (pred - y).abs().mean()

total = 0.0
for x, y in loader:
    pred = model(x)
    loss = crit(pred, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += error(pred, y)
print(total)
""",
    "a variable that becomes a number when its backward pass is over": """\
def train(settings):
    total = 0.0
    for x, y in loader:
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss = loss.item() / settings.steps
        total += loss
    return total
""",
}

REWRITES = {
    "a name": ("total += loss  # epoch", "total += loss.detach()  # epoch"),
    "weighted by a number": ("total += loss * x.size(0)", "total += loss.detach() * x.size(0)"),
    "spelled out": ("total = total + loss / len(loader)", "total = total + loss.detach() / len(loader)"),
    "a moving average": ("total = 0.98 * total + 0.02 * loss", "total = 0.98 * total + 0.02 * loss.detach()"),
    "a sum": ("total += loss + reg", "total += (loss + reg).detach()"),
    "a metric": ("total += (pred - y).abs().mean()", "total += (pred.detach() - y).abs().mean()"),
    "a call": ("total += crit(model(x), y)", "total += crit(model(x), y).detach()"),
    "parentheses": ("total += (\n        loss\n    )", "total += (\n        loss\n    ).detach()"),
}

FIX_FRAME = """\
total = 0.0
for step, (x, y) in enumerate(loader):
    opt.zero_grad()
    pred = model(x)
    loss = crit(pred, y)
    reg = pred.pow(2).mean()
    (loss + reg).backward()
    opt.step()
    @
print(total)
"""


def outcome(code: str) -> list[torch.Tensor]:
    names: dict[str, object] = {}
    exec(code, names)
    return [names["total"].detach(), *(p.detach() for p in names["model"].parameters())]  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds(code: str) -> None:
    assert found(code) == marked(code)


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert found(code) == []


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    code = SETUP + FIX_FRAME.replace("@", before)
    assert fixed(code, "MEM02", unsafe=False) == SETUP + FIX_FRAME.replace("@", after)


@pytest.mark.parametrize("before", [before for before, _ in REWRITES.values()], ids=REWRITES.keys())
def test_same_numbers(before: str) -> None:
    code = SETUP + FIX_FRAME.replace("@", before)
    assert all(map(torch.equal, outcome(code), outcome(fixed(code, "MEM02", unsafe=False))))


FIXED = {name: code for name, code in VARIANTS.items() if "elsewhere" not in name}


@pytest.mark.parametrize("variant", FIXED.values(), ids=FIXED.keys())
def test_fixed_code_has_no_finding(variant: str) -> None:
    assert findings(fixed(SETUP + variant, "MEM02", unsafe=False), "MEM02") == []


def test_a_copy_that_is_summed_in_place_is_no_alias_of_the_loss() -> None:
    code = (
        SETUP
        + "total = torch.tensor(9.0)\nfor x, y in loader:\n"
        + "    loss = crit(model(x), y)\n    if loss < total:\n        total = loss\ntotal += 1\nprint(total)\n"
    )
    after = fixed(code, "MEM02", unsafe=False)
    assert "total = loss.detach().clone()" in after
    assert all(map(torch.equal, outcome(code), outcome(after)))


def test_a_running_maximum_is_the_same_without_its_graphs() -> None:
    code = SETUP + "total = torch.zeros(())\nfor x, y in loader:\n    total = torch.max(total, crit(model(x), y))\n"
    after = fixed(code, "MEM02", unsafe=False)
    assert "torch.max(total, crit(model(x), y).detach())" in after
    assert all(map(torch.equal, outcome(code), outcome(after)))


def test_a_sum_that_may_be_a_number_is_reported_and_left_alone() -> None:
    code = (
        SETUP
        + """\
total = 0.0
for step, (x, y) in enumerate(loader):
    opt.zero_grad()
    pred = model(x)
    aux = 0.0
    if step % 2:
        aux = pred.abs().mean()
    loss = crit(pred, y) + aux
    loss.backward()
    opt.step()
    total += aux
print(total)
"""
    )
    assert len(findings(code, "MEM02")) == 1
    assert fixed(code, "MEM02", unsafe=False) == code
