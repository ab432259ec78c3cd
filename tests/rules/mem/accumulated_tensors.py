"""Running sums that keep graphs, marked `here`; behind SETUP."""

from __future__ import annotations

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


VARIANTS = {
    "a running loss": "running = 0.0\nfor x, y in loader:\n"
    + STEP
    + "    running += loss  # here\nprint(running / 3)\n",
    "a validation with the names of the training above it": """\
for epoch in range(2):
    model.train()
    trained = 0.0
    for x, y in loader:
        out = model(x)
        loss = crit(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        trained += loss.item()
    model.eval()
    validated = 0.0
    for x, y in loader:
        out = model(x)
        loss = crit(out, y)
        validated += loss  # here
    print(trained, validated.item())
""",
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
    "a sum that nobody reads, of what the pass behind the loop frees": """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return torch.distributions.Categorical(logits=self.body(x))

def rollouts(policy: Policy, critic: nn.Linear, state, play):
    for epoch in range(2):
        spread, outs = 0, []
        for step in range(3):
            out = policy(state)
            move = out.sample()
            state = play(move)
            outs.append(out.log_prob(move))
            spread += out.entropy().mean()  # here
        loss = -(torch.stack(outs) * critic(state)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

""",
    "a product": "perplexity = 1\nfor x, y in loader:\n"
    + STEP
    + "    perplexity = perplexity * torch.exp(loss)  # here\nprint(perplexity)\n",
    "a product in place": "perplexity = 1\nfor x, y in loader:\n"
    + STEP
    + "    perplexity *= torch.exp(loss)  # here\nprint(perplexity)\n",
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
    "where gradients are on in training only": """\
def run(net, batches, training):
    totals = torch.zeros(2)
    with torch.set_grad_enabled(training):
        for x, y in batches:
            loss = crit(net(x), y)
            if training:
                opt.zero_grad()
                loss.backward()
                opt.step()
            totals[0] += loss * len(x)  # here
    return totals
""",
}
