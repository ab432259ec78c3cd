"""Containers that keep graphs, at the lines marked `here`; behind SETUP."""

from __future__ import annotations

from tests.rules.mem.accumulated_tensors import SETUP as TRAINING

SETUP = TRAINING + "k = 4\n"


STEP = """\
    opt.zero_grad()
    loss = crit(model(x), y)
    loss.backward()
    opt.step()
"""

TRAIN = """\
def train(net, batches, loss_fn, optimizer):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)  # here
    return losses
"""


VARIANTS = {
    "a rollout of every update": """\
for _ in range(2):
    values = []
    for _ in range(3):
        x = torch.randn(2, 4)
        value = model(x)
        values.append(value)  # here
    target = torch.cat(values).mean().detach()
    opt.zero_grad()
    (model(x) - target).pow(2).mean().backward()
    opt.step()
""",
    "a rollout of what training below calls by the same names": """\
for _ in range(2):
    scores, logs = [], []
    for _ in range(3):
        x = torch.randn(2, 4)
        score = model(x)
        log = F.logsigmoid(score)
        scores.append(score)  # here
        logs.append(log)  # here
    target, old = torch.cat(scores).detach(), torch.cat(logs).detach()
    for step in range(2):
        score = model(torch.randn(6, 4))
        log = F.logsigmoid(score)
        loss = ((score - target) * (log - old)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "outputs of an evaluation that nobody reads": """\
def evaluate(model, batches):
    model.eval()
    outputs, shown, right = [], torch.zeros(16, 2, 1), 0
    for i, (x, y) in enumerate(batches):
        out = model(x)
        outputs.append(out)  # here
        shown[i] = out  # here
        right += (out.argmax(1) == y.argmax(1)).sum().item()
    return right

print(evaluate(model, loader))
""",
    "a place of its own in a dict": "losses = {}\nfor i, (x, y) in enumerate(loader):\n"
    + STEP
    + """\
    losses[i] = loss  # here
print([v.item() for v in losses.values()])
""",
    "a place of its own in a tensor": "losses = torch.zeros(len(loader))\nfor i, (x, y) in enumerate(loader):\n"
    + STEP
    + """\
    losses[i] = loss  # here
print(losses.mean().item())
""",
    "before backward": """\
losses = []
for x, y in loader:
    opt.zero_grad()
    loss = crit(model(x), y)
    losses.append(loss)  # here
    loss.backward()
    opt.step()
print(sum(losses) / len(losses))
""",
    "after backward": "losses = []\nfor x, y in loader:\n"
    + STEP
    + """\
    losses.append(loss)  # here
print(torch.stack(losses).mean().item())
""",
    "a derived value": "losses = []\nfor x, y in loader:\n"
    + STEP
    + """\
    losses.append(loss / k)  # here
    losses.append(loss * x.size(0))  # here
    losses += [loss]  # here
print(sum(losses))
""",
    "an entry of a dict of lists": """\
logs = {"rec": [], "kl": []}
for x, y in loader:
    out = model(x)
    rec = F.mse_loss(out, y)
    kl = out.pow(2).mean()
    loss = rec + 0.1 * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
    logs["rec"].append(rec)  # here
    logs["kl"].append(kl.item())
print(logs)
""",
    "part of a tuple": "hist = []\nfor epoch in range(2):\n    for x, y in loader:\n"
    + STEP.replace("    ", "        ")
    + """\
        hist.append((epoch, loss))  # here
print(hist[-1])
""",
    "part of a dict": "rows = []\nfor x, y in loader:\n"
    + STEP
    + """\
    rows.append({"loss": loss})  # here
print(rows)
""",
    "an attribute that another method resets": """\
class Trainer:
    def __init__(self):
        self.train_losses = []

    def fit(self):
        for x, y in loader:
            opt.zero_grad()
            loss = crit(model(x), y)
            loss.backward()
            opt.step()
            self.train_losses.append(loss)  # here
        print(sum(self.train_losses) / len(self.train_losses))
        self.train_losses = []

Trainer().fit()
""",
    "an attribute filled by a step method": """\
class Trainer:
    def __init__(self):
        self.history = []

    def step(self, x, y):
        opt.zero_grad()
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
        self.history.append(loss)  # here

    def report(self):
        return sum(value.item() for value in self.history)

trainer = Trainer()
for x, y in loader:
    trainer.step(x, y)
print(trainer.report())
""",
    "a helper that returns the graph": """\
def compute_loss(x, y):
    return crit(model(x), y)

losses = []
for x, y in loader:
    losses.append(compute_loss(x, y))  # here
print(losses)
""",
    "a training step that returns the loss": """\
def train_step(x, y):
    opt.zero_grad()
    loss = crit(model(x), y)
    loss.backward()
    opt.step()
    return loss

losses = []
for x, y in loader:
    losses.append(train_step(x, y))  # here
print(losses)
""",
    "a scaled backward": """\
scaler = torch.amp.GradScaler("cpu")
losses = []
for x, y in loader:
    loss = crit(model(x), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    losses.append(loss)  # here
print(losses)
""",
    "an evaluation loop with gradients": """\
def validate(model, batches):
    model.eval()
    val_losses = []
    for x, y in batches:
        val_losses.append(crit(model(x), y))  # here
    print(sum(val_losses) / len(val_losses))

validate(model, loader)
""",
    "outputs": """\
feats = []
for x, y in loader:
    out = model(x)
    loss = crit(out, y)
    loss.backward()
    feats.append(out)  # here
print(torch.cat(feats).shape)
""",
    "a list that is replaced by a longer one": """\
outs = []
for x, y in loader:
    out = model(x)
    crit(out, y).backward()
    outs = outs + [out]  # here
print(len(outs))
""",
    "a comprehension over the loader": """\
losses = [crit(model(x), y) for x, y in loader]  # here
print(max(loss.item() for loss in losses))
""",
    "a deque": "from collections import deque\nrecent = deque(maxlen=100)\nfor x, y in loader:\n"
    + STEP
    + """\
    recent.append(loss)  # here
    print(sum(recent) / len(recent))
""",
    "arguments of a training function": TRAIN + "\ntrain(model, loader, crit, opt)\n",
    "nobody in this file calls it, but the graph is gone": TRAIN.replace("def train(", "def train_epoch("),
    "reset only now and then": "window = []\nfor step, (x, y) in enumerate(loader):\n"
    + STEP
    + """\
    window.append(loss)  # here
    if step % 100 == 99:
        print(sum(window) / 100)
        window = []
""",
    "a loss that a method has sent backward and returns beside a number": """\
class Trainer:
    def __init__(self):
        self.losses = []

    def compute(self, x, y):
        loss = crit(model(x), y)
        loss.backward()
        return len(y), loss

    def fit(self):
        for x, y in loader:
            opt.zero_grad()
            count, loss = self.compute(x, y)
            opt.step()
            self.losses.append(loss)  # here
        return torch.stack(self.losses)
""",
    "in the same branch as the pass that frees it": """\
from training import finish

losses = []
for x, y in loader:
    loss = crit(model(x), y)
    if k > 1:
        losses.append(loss)  # here
        (loss / k).backward()
    else:
        loss.backward()
finish(losses)
""",
}
