"""Evaluations that record no graph, since gradients are off or the network is frozen; behind SETUP of the others."""

from __future__ import annotations

GRADIENTS_OFF = {
    "a loss beside a network that runs without gradients": """\
class Joint(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.first = nn.CrossEntropyLoss(weight)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, given, wanted):
        return {"first": self.scale * self.first(given[0], wanted), "second": given[1].mean()}

def validate(net, criterion, batches):
    net.eval()
    total = 0.0
    for x, y in batches:
        with torch.no_grad():
            out, side = net(x)
        losses = criterion((out, side), y)
        total += sum(losses.values()).item()
    return total

print(validate(nn.LSTM(4, 3), Joint(None), loader))
""",
    "the callers are without gradients": """\
def evaluate(net):
    net.eval()
    return sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader)

with torch.no_grad():
    print(evaluate(model))
""",
    "decorated": """\
@torch.inference_mode()
def evaluate(net):
    net.eval()
    for x, y in val_loader:
        print(net(x).argmax(1))

evaluate(model)
""",
    "gradients are off for the whole program": """\
torch.set_grad_enabled(False)

def evaluate(net):
    net.eval()
    for x, y in val_loader:
        print(net(x).argmax(1))

evaluate(model)
""",
    "set_grad_enabled of a phase": """\
for phase in ["train", "val"]:
    model.train(phase == "train")
    for x, y in loader:
        with torch.set_grad_enabled(phase == "train"):
            loss = crit(model(x), y)
            if phase == "train":
                opt.zero_grad()
                loss.backward()
                opt.step()
        print(loss.item())
""",
    "Lightning": """\
import pytorch_lightning as pl

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)

    def validation_step(self, batch, index):
        x, y = batch
        self.log("loss", F.cross_entropy(self.net(x), y))

    def test_step(self, batch, index):
        x, y = batch
        hits = (self.net(x).argmax(1) == y).sum().item()
        self.log("hits", hits)
""",
    "a frozen network": """\
net = nn.Linear(4, 3)
for p in net.parameters():
    p.requires_grad_(False)
net.eval()

def evaluate(batches):
    hits = 0
    for x, y in batches:
        hits += (net(x).argmax(1) == y).sum().item()
    return hits

print(evaluate(val_loader))
""",
    "a network that is frozen behind a switch": """\
net = nn.Linear(4, 3)
net.cuda().eval().requires_grad_(False)

for x, y in val_loader:
    print((net(x).argmax(1) == y).sum().item())
""",
    "a callback that runs without gradients": """def main(net, loader, opt):
    def show(x):
        plot(net, x)

    fit(net, loader, opt, show)

def fit(net, loader, opt, on_save=None):
    for step, (x, y) in enumerate(loader):
        opt.zero_grad()
        crit(net(x), y).backward()
        opt.step()
        if step % 100 == 0:
            with torch.no_grad():
                if on_save is not None:
                    on_save(x)

def plot(net, x):
    net.eval()
    print(net(x).argmax(1))

main(model, loader, opt)
""",
    "a flag that is always set": """\
def run_epoch(batches, train=True):
    for x, y in batches:
        loss = crit(model(x), y)
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()

run_epoch(loader)
""",
    "a flag whose callers switch gradients": """\
def step(x, y):
    out = model(x)
    loss = crit(out, y)
    if model.training:
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())

def train():
    model.train()
    with torch.enable_grad():
        for x, y in loader:
            step(x, y)

def validate():
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            step(x, y)

train()
validate()
""",
    "a network that a helper freezes": """\
def set_requires_grad(net, state):
    for parameter in net.parameters():
        parameter.requires_grad_(state)

D = nn.Linear(4, 3)
set_requires_grad(D, False)
for x, y in loader:
    print(D(x).mean().item())
    opt.zero_grad()
    crit(model(x), y).backward()
    opt.step()
""",
    "a policy that runs without gradients by itself": """\
class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, x):
        return self.net(x)

    def step(self, x):
        with torch.no_grad():
            return self.net(x).argmax().item()

actor = Actor()
for x, y in loader:
    print(actor.step(x))
""",
    "a network that runs a method of another without gradients by itself": """\
class Features(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        with torch.no_grad():
            y = self.net.extract(x)
        return y.mean()

features = Features(torch.load("net.pt")).eval()
for x, y in loader:
    print(features(x).item())
""",
    "a part of a pass that callers out of sight switch": """\
class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 4)

    def forward(self, x, mode="forward"):
        return getattr(self, "_" + mode)(x)

    def _sample(self, x):
        return self._sample_beam(x)

    def _sample_beam(self, x):
        words = []
        for step in range(3):
            words.append(self.embed(x).argmax(1).tolist())
        return words
""",
    "a metric whose network is frozen when it is made": """\
class Statistics(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner.eval()
        self.inner.requires_grad_(False)

    def forward(self, x):
        return self.inner(x)

statistics = Statistics(model)
for x, y in val_loader:
    print(statistics(x).mean().item())
""",
    "volatile that was written over": """\
from torch.autograd import Variable
from somewhere import make_generator

netG = nn.DataParallel(make_generator())
for x, y in loader:
    noise = Variable(torch.randn(2, 4), volatile=True)
    noise = Variable(noise.data)
    opt.zero_grad()
    netG(noise).mean().backward()
    opt.step()
""",
    "an object that switches gradients off when it is made": """\
class Inferer:
    def __init__(self, net):
        self.net = net
        self.net.eval()
        torch.set_grad_enabled(False)

    def evaluate(self, x):
        return self.net(x).argmax(1).tolist()

print([Inferer(model).evaluate(x) for x, _ in val_loader])
""",
    "a metric whose base runs its update without gradients": """\
from torchmetrics.metric import Metric

class Distance(Metric):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.sums = []

    def features(self, x):
        return self.net(x)

    def update(self, x):
        self.sums.append(self.features(x).mean())

    def compute(self):
        return torch.stack(self.sums).mean().item()

def test(metric):
    for x, _ in val_loader:
        metric.update(x)
    print(metric.compute())

test(Distance())
""",
}
