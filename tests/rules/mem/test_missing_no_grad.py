"""MEM05: an evaluation records an autograd graph that nobody uses."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
import torch

from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
crit = nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [(torch.randn(2, 4), torch.tensor([0, 2])) for _ in range(3)]
val_loader = [(torch.randn(2, 4), torch.tensor([1, 2])) for _ in range(2)]
"""


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "MEM05")]


def marked(code: str) -> list[int]:
    return [number for number, line in enumerate(code.splitlines(), 1) if "# here" in line]


VARIANTS = {
    "an evaluation function": """\
def evaluate(model, loader):  # here
    model.eval()
    correct = 0
    for x, y in loader:
        out = model(x)
        correct += (out.argmax(1) == y).sum().item()
    return correct

print(evaluate(model, val_loader))
""",
    "a block inside the training function": """\
def train(epochs):
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            opt.zero_grad()
            loss = crit(model(x), y)
            loss.backward()
            opt.step()
        model.eval()
        val_loss = 0.0
        for x, y in val_loader:
            out = model(x)  # here
            val_loss += crit(out, y).item()
        print(val_loss / len(val_loader))

train(2)
""",
    "a method": """\
class Trainer:
    def __init__(self, net):
        self.model = net

    def fit(self):
        self.model.train()
        for x, y in loader:
            opt.zero_grad()
            crit(self.model(x), y).backward()
            opt.step()

    def validate(self):  # here
        self.model.eval()
        hits = 0
        for x, y in val_loader:
            hits += (self.model(x).argmax(1) == y).sum().item()
        return hits

trainer = Trainer(model)
trainer.fit()
print(trainer.validate())
""",
    "two phases in one loop": """\
for epoch in range(2):
    for phase in ["train", "val"]:
        if phase == "train":
            model.train()
        else:
            model.eval()
        for x, y in loader if phase == "train" else val_loader:
            opt.zero_grad()
            out = model(x)  # here
            loss = crit(out, y)
            if phase == "train":
                loss.backward()
                opt.step()
            print(loss.item())
""",
    "one prediction": """\
def predict(x):  # here
    model.eval()
    out = model(x)
    return out.argmax(1).tolist()

print(predict(torch.randn(2, 4)))
""",
    "only the metric is without gradients": """\
def evaluate(model, loader):  # here
    model.eval()
    correct = 0
    for x, y in loader:
        out = model(x)
        with torch.no_grad():
            correct += (out.argmax(1) == y).sum().item()
    return correct

print(evaluate(model, val_loader))
""",
    "volatile, which means nothing any more": """\
from torch.autograd import Variable

def test():  # here
    model.eval()
    test_loss = 0
    for data, target in val_loader:
        data, target = Variable(data, volatile=True), Variable(target)
        output = model(data)
        test_loss += F.cross_entropy(output, target).item()
    print(test_loss)

test()
""",
    "a comprehension": """\
model.eval()
preds = [model(x).argmax(1) for x, _ in val_loader]  # here
print(torch.cat(preds).tolist())
""",
    "a teacher in the training step": """\
teacher = nn.Linear(4, 3)
teacher.load_state_dict(torch.load("teacher.pt"))
teacher.eval()
for x, y in loader:
    target = teacher(x)  # here
    loss = F.mse_loss(model(x), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a bare call of no_grad": """\
def test(net, data):  # here
    net.eval()
    torch.no_grad()
    errors = torch.zeros(10)
    for i in range(10):
        errors[i] = F.mse_loss(net(data[i]), data[i]).item()
    print(errors.mean())
""",
    "a script": """\
net = nn.Linear(4, 3)
net.load_state_dict(torch.load("net.pt"))
net.eval()
hits = 0
for x, y in val_loader:
    out = net(x)  # here
    hits += (out.argmax(1) == y).sum().item()
print(hits)
""",
    "a model of another file": """\
from project.models import Net

def evaluate(net, batches):  # here
    net.eval()
    preds, truth = [], []
    for x, y in batches:
        preds.extend(net(x).data.max(1)[1].tolist())
        truth.extend(y.tolist())
    return sum(p == t for p, t in zip(preds, truth)) / len(truth)

def main():
    net = Net()
    net.load_state_dict(torch.load("net.pt"))
    print(evaluate(net, val_loader))
""",
    "a loop in a program that only evaluates": """\
from project.models import create_model

def main():
    net = create_model()
    net.load_state_dict(torch.load("net.pt"))
    net.eval()
    hits = 0
    for x, y in val_loader:
        out = net(x)  # here
        hits += (out.argmax(1) == y).sum().item()
    print(hits)

main()
""",
    "validation inside a training method": """class Solver:
    def __init__(self, net, loaders):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.train_loader, self.valid_loader = loaders

    def train(self):
        from project.metrics import accuracy

        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            crit(self.net(x), y).backward()
            self.optimizer.step()
        self.net.train(False)
        for x, y in self.valid_loader:
            out = torch.sigmoid(self.net(x))  # here
            print(accuracy(out, y))
""",
    "a helper that training uses too runs the model": """from project.base import Experiment
class Forecast(Experiment):
    def run_batch(self, x, y):
        out = self.model(x.to(self.device))
        if self.args.inverse:
            out = self.scaler.inverse(out)
        return out, y.to(self.device)

    def validate(self, val_loader):  # here
        self.model.eval()
        total = []
        for x, y in val_loader:
            out, y = self.run_batch(x, y)
            total.append(crit(out.detach().cpu(), y.detach().cpu()))
        return sum(total) / len(total)

    def fit(self):
        for x, y in loader:
            opt.zero_grad()
            out, y = self.run_batch(x, y)
            crit(out, y).backward()
            opt.step()
""",
    "one pass over a whole graph": """from project.metrics import accuracy
def test():  # here
    model.eval()
    out = model(features)
    loss = F.nll_loss(out[idx_test], labels[idx_test])
    print(loss.item(), accuracy(out[idx_test], labels[idx_test]).item())

test()
""",
    "a model that the program makes itself": """def main():
    net = nn.Linear(4, 3)
    net.eval()
    correct = 0
    for x, y in val_loader:
        out = net(x)  # here
        correct += (out.argmax(1) == y).sum().item()
    print(correct)
""",
    "features of a data set": """def extract(net, data_loader):  # here
    features = []
    for x, _ in data_loader:
        features.append(net(x).data.numpy())
    return features

net = nn.Linear(4, 3)
print(extract(net, val_loader))
""",
    "generation token by token": """\
def generate(net, tokens, steps):  # here
    net.eval()
    for _ in range(steps):
        logits = net(tokens)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
    return tokens.tolist()
""",
    "an adversarial evaluation": """\
def test(net, epsilon):
    net.eval()
    correct = 0
    for x, y in val_loader:
        x.requires_grad = True
        loss = F.cross_entropy(net(x), y)
        net.zero_grad()
        loss.backward()
        adversary = x + epsilon * x.grad.sign()
        correct += (net(adversary).argmax(1) == y).sum().item()  # here
    return correct

print(test(model, 0.1))
""",
    "a prediction beside gradients of the input": """def force(net, x):
    energy = net(x).sum()
    return -torch.autograd.grad(energy, x)[0]

def evaluate(net, batches):
    net.eval()
    errors = []
    for x, y in batches:
        out = net(x)  # here
        errors.append((force(net, x) - out).abs().mean().item())
    return errors
""",
    "a prediction after test-time training": """\
def evaluate(net, batches):
    for x, y in batches:
        adapt = F.mse_loss(net(x), net(x + 0.1))
        opt.zero_grad()
        adapt.backward()
        opt.step()
        print((net(x).argmax(1) == y).sum().item())  # here

evaluate(model, val_loader)
""",
    "a forward pass in evaluation mode in a function that trains": """\
def train(epoch, fast):
    model.train()
    opt.zero_grad()
    out = model(x)
    loss = crit(out, y)
    loss.backward()
    opt.step()
    if not fast:
        model.eval()
        out = model(x)  # here
    print(epoch, crit(out, y).item())

x, y = loader[0]
for epoch in range(3):
    train(epoch, False)
""",
    "a flag that callers set": """\
def run_epoch(epoch, cross_valid=False):
    total = 0.0
    for x, y in val_loader if cross_valid else loader:
        out = model(x)  # here
        loss = crit(out, y)
        if not cross_valid:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item()
    return total

for epoch in range(2):
    print(run_epoch(epoch))
    print(run_epoch(epoch, cross_valid=True))
""",
    "a flag that is handed on": """\
def run_batch(x, y, train):
    loss = crit(model(x), y)  # here
    if train:
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()

def run_epoch(batches, train=True):
    for x, y in batches:
        print(run_batch(x, y, train))

run_epoch(loader)
run_epoch(val_loader, False)
""",
    "no optimizer, no training": """\
def run_epoch(batches, optimizer=None):
    is_train = optimizer is not None
    for x, y in batches:
        out = model(x)  # here
        loss = crit(out, y)
        if is_train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item())

run_epoch(loader, opt)
run_epoch(val_loader)
""",
    "the mode of the model": """\
def run_epoch(batches):
    for x, y in batches:
        loss = crit(model(x), y)  # here
        if model.training:
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss.item())

model.train()
run_epoch(loader)
model.eval()
run_epoch(val_loader)
""",
    "samples that are looked at while training": """\
G, D = nn.Linear(3, 4), nn.Linear(4, 1)
fixed = torch.randn(2, 3)
for step in range(4):
    opt.zero_grad()
    D(G(torch.randn(2, 3))).mean().backward()
    opt.step()
    if step % 2 == 0:
        print(G(fixed).detach().numpy())  # here
""",
    "a target network that training does not reach": """\
target = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
for x, y in loader:
    best = target(x).max(1)[0].detach()  # here
    loss = F.mse_loss(model(x).max(1)[0], best)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a network with a part that is frozen": """\
net = nn.Sequential(nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 3))
for name, parameter in net.named_parameters():
    if name.startswith("0"):
        parameter.requires_grad = False
net.eval()
for x, y in val_loader:
    print((net(x).argmax(1) == y).sum().item())  # here
""",
    "actions that only the environment gets": """\
class Agent:
    def __init__(self, policy: nn.Module):
        self.policy = policy

    def select_action(self, state):  # here
        action, _ = self.policy.sample(torch.as_tensor(state))
        return action.detach().cpu().numpy()[0]

    def update(self, states):
        _, log_prob = self.policy.sample(states)
        opt.zero_grad()
        (-log_prob).mean().backward()
        opt.step()
""",
    "episodes of an expert": """\
import gym
import numpy as np

env = gym.make("CartPole-v1")
model.load_state_dict(torch.load("expert.pt"))
states, actions = [], []
for episode in range(10):
    state, done = env.reset(), False
    while not done:
        action = model(torch.as_tensor(state)).argmax().cpu().numpy()  # here
        state, reward, done, _ = env.step(action)
        states.append(state)
        actions.append(action)
np.savez("expert.npz", states=np.stack(states), actions=np.stack(actions))
""",
    "a rollout with a helper that training uses too": """\
def policy(state):
    return torch.distributions.Categorical(logits=model(state))

def act(state):  # here
    return policy(state).sample().item()

def train(states):
    for state in states:
        action = act(state)
        opt.zero_grad()
        (-policy(state).log_prob(torch.tensor(action))).backward()
        opt.step()
""",
    "a beam search that returns the best": """\
def beam_search(encoder, x):  # here
    done, scores = [], []
    states = encoder(x)
    for step in range(3):
        top, words = states.topk(2)
        done.extend(words.tolist())
        scores.extend(top[0])
    return done[scores.index(max(scores))]

for x, y in loader:
    opt.zero_grad()
    crit(model(x), y).backward()
    opt.step()
print(beam_search(model, torch.randn(1, 4)))
""",
    "samples on the axes of a figure": """\
import matplotlib.pyplot as plt

def chain(net, x):  # here
    seen = [x]
    for step in range(100):
        x = x + 0.1 * net(x)
        seen.append(x)
    return seen

for x, y in loader:
    opt.zero_grad()
    crit(model(x), y).backward()
    opt.step()
figure, axes = plt.subplots(1, 4)
points = chain(model, torch.randn(5, 4))
for place in range(4):
    shown = points[place * 10]
    axes[place].scatter(shown[:, 0].detach(), shown[:, 1], s=10)
""",
    "volatile in a list of inputs": """\
from torch.autograd import Variable

class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(4, 3)

    def run(self, inputs):
        return self.backbone(inputs[0])

    def detect(self, image):  # here
        image = Variable(image, volatile=True)
        return self.run([image, 3]).data.cpu().numpy()

    def learn(self, x, y):
        opt.zero_grad()
        crit(self.run([x]), y).backward()
        opt.step()
""",
    "volatile in the midst of training": """\
from torch.autograd import Variable
from somewhere import make_generator

netG, netD = nn.DataParallel(make_generator()), nn.Linear(4, 1)
for x, y in loader:
    noise = Variable(torch.randn(2, 4), volatile=True)
    fake = Variable(netG(noise).data)  # here
    opt.zero_grad()
    (netD(x) - netD(fake)).mean().backward()
    opt.step()
    noise = Variable(torch.randn(2, 4))
    opt.zero_grad()
    netD(netG(noise)).mean().backward()
    opt.step()
""",
    "the accuracy of a copy that adapts": """\
from copy import deepcopy

class Meta(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)

    def finetune(self, x, y):
        net = deepcopy(self.net)
        inner = torch.optim.SGD(net.parameters(), lr=0.1)
        hits = []
        for step in range(3):
            inner.zero_grad()
            crit(net(x), y).backward()
            inner.step()
            hits.append((net(x).argmax(1) == y).sum().item())  # here
        return hits
""",
    "targets made without gradients": """\
def validate():  # here
    total = 0.0
    for _ in range(2):
        x, y = val_loader[0]
        y = torch.zeros(2, 3, requires_grad=False).scatter_(1, y[:, None], 1)
        total += F.mse_loss(model(x), y).item()
    return total

print(validate())
""",
    "volatile, with a result that goes where that of training goes": """\
from torch.autograd import Variable

class Segmenter:
    def __init__(self, net):
        self.net = net

    def forward(self, x, phase):
        if phase == "train":
            self.out = self.net(Variable(x))
        else:
            self.out = self.net(Variable(x, volatile=True))  # here

    def step(self, x, y):
        self.forward(x, "train")
        opt.zero_grad()
        crit(self.out, y).backward()
        opt.step()
""",
    "forward by its name, between epochs": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x), x

net = Net()
losses = []
for epoch in range(3):
    for x, y in loader:
        out, _ = net.forward(x)
        opt.zero_grad()
        crit(out, y).backward()
        opt.step()
    out, _ = net.forward(val_loader[0][0])  # here
    losses.append(crit(out, val_loader[0][1]))
print([loss.detach().numpy() for loss in losses])
""",
    "a chain of networks of a trainer": """\
class Translator:
    def __init__(self):
        self.there, self.back = nn.Linear(4, 4), nn.Linear(4, 4)
        self.opt = torch.optim.SGD(self.there.parameters(), lr=0.1)

    def fit(self, x):
        self.opt.zero_grad()
        (self.back(self.there(x)) - x).abs().mean().backward()
        self.opt.step()

    def generate(self, x, rounds):  # here
        chain = [self.there, self.back] * rounds
        for net in chain:
            x = net(x)
            print(x.data)
""",
    "a module that trains itself": """\
class Forecaster(nn.Module):
    def __init__(self, series):
        super().__init__()
        self.series = series
        self.layer = nn.Linear(4, 1).double()
        self.opt = torch.optim.SGD(self.layer.parameters(), lr=0.1)

    def train(self):
        for step in range(3):
            self.opt.zero_grad()
            self.layer(torch.from_numpy(self.series)).mean().backward()
            self.opt.step()
        print(self.test())

    def test(self):  # here
        out = []
        i = 0
        while i < len(self.series):
            out.append(self.layer(torch.from_numpy(self.series[i : i + 1])).data.numpy())
            i += 1
        return out
""",
}

LOOK_ALIKES = {
    "forces are gradients": """\
def evaluate(net, batches):
    net.eval()
    errors = []
    for x, y in batches:
        x.requires_grad_(True)
        energy = net(x).sum()
        forces = -torch.autograd.grad(energy, x)[0]
        errors.append((forces - y).abs().mean().item())
    return sum(errors)

print(evaluate(nn.Linear(4, 1), loader))
""",
    "Grad-CAM": """\
def generate_cam(net, image):
    net.eval()
    out = net(image)
    net.zero_grad()
    out.max().backward()
    return net[0].weight.grad.abs().mean().item()

print(generate_cam(model, torch.randn(1, 4)))
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
    "batch norm frozen while training": """\
def train():
    model.eval()
    for x, y in loader:
        opt.zero_grad()
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
        print(loss.item())

train()
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
    "a policy that is trained on what it returns": """\
def act(policy, state):
    probs = F.softmax(policy(state), dim=-1)
    dist = torch.distributions.Categorical(probs)
    action = dist.sample()
    return action.item(), dist.log_prob(action)
""",
    "actions whose log-probabilities are saved for the episode": """\
from collections import namedtuple

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
saved = []

def select_action(policy, state):
    probs, value = policy(state)
    dist = torch.distributions.Categorical(probs)
    action = dist.sample()
    saved.append(SavedAction(dist.log_prob(action), value))
    return action.item()
""",
    "a shape check of a model file": """\
class PNAS(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(x)

def test():
    net = PNAS()
    x = torch.randn(2, 4)
    y = net(x)
    print(y.size())

test()
""",
    "a forward of a module": """\
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)

    def forward(self, xs):
        return [self.a(x) for x in xs]
""",
    "a plain training loop": """\
for x, y in loader:
    out = model(x)
    loss = crit(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
""",
    "a training step that another function calls": """\
def step(net, batch):
    return crit(net(batch[0]), batch[1])

def train():
    for batch in loader:
        opt.zero_grad()
        step(model, batch).backward()
        opt.step()

train()
""",
    "a sampler whose samples train another network": """\
def sample(net, n):
    fakes = []
    for _ in range(n):
        fakes.append(net(torch.randn(2, 4)))
    return torch.cat(fakes)

critic = nn.Linear(3, 1)
for x, y in loader:
    loss = -critic(sample(model, 2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the features of a perceptual loss": """\
vgg = nn.Linear(3, 3)
vgg.eval()
for x, y in loader:
    out = model(x)
    loss = F.mse_loss(vgg(out), out)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a classifier that is trained in evaluation mode": """\
def train(net, loss_fn, optimizer):
    net.eval()
    for x, y in loader:
        loss = loss_fn(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

train(model, crit, opt)
""",
    "a class that came in as an argument": """\
def evaluate(Model: nn.Module, path):
    net = Model(4).to("cpu")
    net.load_state_dict(torch.load(path))
    net.eval()
    hits = 0
    for x, y in val_loader:
        with torch.no_grad():
            hits += (net(x).argmax(1) == y).sum().item()
    return hits
""",
    "an attack that takes gradients out of sight": """\
def test(net, adversary):
    net.eval()
    correct = 0
    for x, y in val_loader:
        x = adversary.perturb(x, y)
        correct += (net(x).argmax(1) == y).sum().item()
    return correct
""",
    "a score of a library, whose callers are elsewhere": """\
class Autoencoder(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def test(self, z, y):
        return (self.decoder(z).argmax(1) == y).sum().item()
""",
    "a loss that both training and evaluation use": """\
def batch_loss(net, x, y):
    return crit(net(x), y)

def mean_loss(net, batches):
    return sum(batch_loss(net, x, y).item() for x, y in batches) / len(batches)

for x, y in loader:
    opt.zero_grad()
    batch_loss(model, x, y).backward()
    opt.step()
model.eval()
with torch.no_grad():
    print(mean_loss(model, val_loader))
""",
    "a program whose training is out of sight": """from project.engine import train_one_epoch

def main(net, optimizer):
    train_one_epoch(net, loader)
    net.eval()
    out = net(torch.randn(2, 4))
    print(out.argmax(1))
""",
    "one function for both modes": """\
def run_epoch(net, batches, train):
    net.train(train)
    for x, y in batches:
        with torch.set_grad_enabled(train):
            loss = crit(net(x), y)
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss.item())

run_epoch(model, loader, True)
run_epoch(model, val_loader, False)
""",
    "the model of another file takes gradients of its input": """\
from project.physics import Potential

potential = Potential()

def evaluate(batches):
    potential.eval()
    for x, y in batches:
        energy = potential(x)
        force = -torch.autograd.grad(energy.sum(), x, create_graph=True)[0]
        print((force - y).abs().mean().item())
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
    "a network that keeps what it computes": """\
class Style(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        self.loss = self.layer(x).square().mean()
        return self.layer(x)

style = Style()
for x, y in loader:
    opt.zero_grad()
    print(style(x).argmax(1))
    style.loss.backward()
    opt.step()
""",
    "a network that a hook listens to": """\
model.register_forward_hook(lambda module, args, out: seen.append(out))
seen = []
for x, y in loader:
    opt.zero_grad()
    print(model(x).argmax(1))
    seen.pop().mean().backward()
    opt.step()
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
    "an action whose log-probability is kept for the episode": """\
def select_action(state):
    out = torch.distributions.Categorical(logits=model(state))
    action = out.sample()
    model.saved.append(out.log_prob(action))
    return action.item()

def train(env):
    for episode in range(10):
        state = env.reset()
        for step in range(100):
            state, reward, done, _ = env.step(select_action(state))
        opt.zero_grad()
        torch.stack(model.saved).sum().backward()
        opt.step()
""",
    "numbers of a network that is asked for its loss afterwards": """\
from somewhere import build

style = build().train()

def step(x):
    for part in x:
        print(style(part).argmax(1))

def train():
    for x, y in loader:
        opt.zero_grad()
        step(x)
        style.loss.backward()
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
    "shapes of one network after the other": """\
def test():
    for net in [nn.Linear(4, 3), nn.Linear(4, 8)]:
        print(net(torch.randn(2, 4)).shape)

test()
""",
    "a method of a module that hands its pass on": """\
class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def sample(self, x):
        for _ in range(3):
            x = self.cell(x)
        return x
""",
}

LOOK_ALIKES["a callback that may take gradients"] = """def each_batch(net, loader, callback):
    net.eval()
    for x, y in loader:
        callback(net(x))
"""

NOT_REWRITTEN = {
    "a statement that has gradients to record": """\
target = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
for x, y in loader:
    loss = F.mse_loss(model(x).max(1)[0], target(x).max(1)[0].detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "other code runs at every yield": """def pseudo_labels(net, loader):
    net.eval()
    for x, y in loader:
        yield x, net(x).argmax(1)
""",
    "other tasks run at every await": """async def monitor(net, queue):
    net.eval()
    hits = 0
    while True:
        x = await queue.get()
        if x is None:
            break
        hits += net(x).argmax(1).sum()
    return hits.item()
""",
}

REWRITES = {
    "a whole function": (
        """\
def evaluate(model, loader):
    # accuracy in percent
    model.eval()
    correct = 0
    for x, y in loader:
        out = model(x)
        correct += (out.argmax(1) == y).sum().item()
    return correct

result = evaluate(model, val_loader)
""",
        """\
@torch.no_grad()
def evaluate(model, loader):
    # accuracy in percent
    model.eval()
    correct = 0
    for x, y in loader:
        out = model(x)
        correct += (out.argmax(1) == y).sum().item()
    return correct

result = evaluate(model, val_loader)
""",
    ),
    "a static method": (
        """\
class Task:
    @staticmethod
    def evaluate(net, loader):
        net.eval()
        return [net(x).argmax(1).tolist() for x, y in loader]

result = Task.evaluate(model, val_loader)
""",
        """\
class Task:
    @staticmethod
    @torch.no_grad()
    def evaluate(net, loader):
        net.eval()
        return [net(x).argmax(1).tolist() for x, y in loader]

result = Task.evaluate(model, val_loader)
""",
    ),
    "a loop inside the training function": (
        """\
def train():
    for x, y in loader:
        opt.zero_grad()
        crit(model(x), y).backward()
        opt.step()
    model.eval()
    val_loss = 0.0
    # every batch counts the same
    for x, y in val_loader:
        # forward
        out = model(x)
        val_loss += crit(out, y).item()  # of this batch
    return val_loss

result = train()
""",
        """\
def train():
    for x, y in loader:
        opt.zero_grad()
        crit(model(x), y).backward()
        opt.step()
    model.eval()
    val_loss = 0.0
    # every batch counts the same
    with torch.no_grad():
        for x, y in val_loader:
            # forward
            out = model(x)
            val_loss += crit(out, y).item()  # of this batch
    return val_loss

result = train()
""",
    ),
    "a comprehension": (
        "model.eval()\nresult = [model(x).argmax(1).tolist() for x, _ in val_loader]\n",
        "model.eval()\nwith torch.no_grad():\n    result = [model(x).argmax(1).tolist() for x, _ in val_loader]\n",
    ),
    "two phases": (
        """\
result = []
for phase in ["train", "val"]:
    model.train(phase == "train")
    for x, y in loader:
        loss = crit(model(x), y)
        if phase == "train":
            opt.zero_grad()
            loss.backward()
            opt.step()
        result.append(loss.item())
""",
        """\
result = []
for phase in ["train", "val"]:
    model.train(phase == "train")
    with torch.set_grad_enabled(phase == "train"):
        for x, y in loader:
            loss = crit(model(x), y)
            if phase == "train":
                opt.zero_grad()
                loss.backward()
                opt.step()
            result.append(loss.item())
""",
    ),
}


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds(code: str) -> None:
    assert found(code) == marked(code)


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert found(code) == []


@pytest.mark.parametrize("code", NOT_REWRITTEN.values(), ids=NOT_REWRITTEN.keys())
def test_does_not_switch_gradients_off_for_others(code: str) -> None:
    assert len(found(code)) == 1
    assert fixed(SETUP + code, "MEM05") == SETUP + code


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    assert fixed(SETUP + before, "MEM05") == SETUP + after


def test_a_long_loop_is_not_indented_as_a_whole() -> None:
    filler = "".join(f"    shown = {number}\n" for number in range(40))
    before = "    hits = (model(x).argmax(1) == y).sum().item()\n"
    after = "    with torch.no_grad():\n        hits = (model(x).argmax(1) == y).sum().item()\n"
    head = SETUP + "model.eval()\nfor x, y in val_loader:\n" + filler
    assert fixed(head + before + "    print(hits, shown)\n", "MEM05") == head + after + "    print(hits, shown)\n"


def test_neighbouring_statements_go_into_one_block() -> None:
    training = "G, H, D = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(4, 1)\nfixed = torch.randn(2, 3)\n"
    training += "for step in range(4):\n    opt.zero_grad()\n    D(G(torch.randn(2, 3)) + H(fixed)).mean().backward()\n"
    training += "    opt.step()\n    if step % 2 == 0:\n"
    first, second = "a = G(fixed).detach().numpy()\n", "b = H(fixed).detach().numpy()\n"
    ends = "        print(a, b)\n"
    block = f"        with torch.no_grad():\n            {first}            {second}"
    assert fixed(f"{SETUP}{training}        {first}        {second}{ends}", "MEM05") == SETUP + training + block + ends
    apart = f"        {first}        print(a)\n        {second}        print(b)\n"
    assert fixed(SETUP + training + apart, "MEM05").count("with torch.no_grad():") == 2


def test_is_no_safe_fix() -> None:
    code = SETUP + REWRITES["a whole function"][0]
    assert fixed(code, "MEM05", unsafe=False) == code


@pytest.mark.parametrize("before", [before for before, _ in REWRITES.values()], ids=REWRITES.keys())
def test_same_result(before: str) -> None:
    results = []
    for code in (SETUP + before, fixed(SETUP + before, "MEM05")):
        names: dict[str, object] = {}
        exec(code, names)
        results.append((names["result"], names["model"]))
    (first, trained), (second, trained_too) = results
    assert first == second
    assert all(map(torch.equal, trained.parameters(), trained_too.parameters()))  # type: ignore[attr-defined]


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_fixed_code_has_no_finding(variant: str) -> None:
    assert findings(fixed(SETUP + variant, "MEM05"), "MEM05") == []


@pytest.mark.parametrize(
    ("imports", "spelling"),
    [("import torch as th", "th.no_grad"), ("from torch import no_grad, nn\nimport torch", "no_grad")],
    ids=["an alias", "a name"],
)
def test_spells_torch_as_the_file_does(imports: str, spelling: str) -> None:
    code = f"""\
{imports}

def evaluate(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x).argmax(1))
"""
    assert f"@{spelling}()\ndef evaluate" in fixed(code, "MEM05")


def test_message_names_the_bare_call() -> None:
    code = SETUP + VARIANTS["a bare call of no_grad"]
    line = 1 + code[: code.index("torch.no_grad()")].count("\n")
    assert f"line {line}" in findings(code, "MEM05")[0].message


def test_a_program_that_makes_its_model_and_trains_it_is_no_smoke_test() -> None:
    code = """
        import torch
        from torch import nn
        from torchvision.utils import save_image

        def main(batches, noise):
            net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(10):
                for x in batches:
                    optimizer.zero_grad()
                    net(x).mean().backward()
                    optimizer.step()
                net.eval()
                samples = net(noise)
                net.train()
                save_image(samples, f"{epoch}.png")
        """
    (finding,) = findings(code, "MEM05")
    assert finding.line == 14


def test_a_loop_that_nobody_takes_results_of() -> None:
    code = """
        import time
        import torch

        def measure(model, x):
            start = time.perf_counter()
            for _ in range(100):
                model(x)
            return time.perf_counter() - start

        measure(torch.nn.Linear(4, 4), torch.ones(1, 4))
        """
    assert len(findings(code, "MEM05")) == 1
    assert findings(code.replace("import time", "import time  # register_forward_hook("), "MEM05") == []


def test_a_script_that_shows_what_layers_return() -> None:
    code = """
        import torch

        cell = torch.nn.RNN(4, 2)
        for x in torch.randn(3, 1, 1, 4):
            out, hidden = cell(x)
            print(out.size(), out.tolist())
        """
    assert findings(code, "MEM05") == []
    assert len(findings(code.replace("nn.RNN(4, 2)", "nn.RNN(4, 2); cell.load_state_dict({})"), "MEM05")) == 1


def test_a_network_out_of_sight_in_a_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    code = SETUP + VARIANTS["volatile in the midst of training"]
    (tmp_path / "main.py").write_text(code)
    found = lint(Source.read(tmp_path / "main.py"), Settings.selecting("MEM05"), strict=True, project=Project())
    assert [finding.line for finding in found] == [code[: code.index("# here")].count("\n") + 1]


PHASES = """
    class Trainer:
        def run_epoch(self, phase, batches):
            for x, y in batches:
                loss = self.model(x).mean()
                if phase == "train":
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()
                print(loss.item())

        def __init__(self, model: torch.nn.Module):
            self.model = model
            self.opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def val(self, batches):
            self.run_epoch("val", batches)

        def train(self, batches):
            self.run_epoch("train", batches)
    """


@pytest.mark.parametrize(("switch", "count"), [("with torch.no_grad():", 0), ("if True:", 1)])
def test_a_driver_that_reaches_the_trainer_through_a_table(tmp_path: Path, switch: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "trainer.py").write_text("import torch\n" + dedent(PHASES))
    (tmp_path / "factory.py").write_text("from trainer import Trainer\n\ntrainers = {'box': Trainer}\n")
    driver = f"""
        import torch
        from factory import trainers

        def main(name, model, batches):
            trainer = trainers[name](model)
            trainer.train(batches)
            {switch}
                trainer.val(batches)
        """
    (tmp_path / "main.py").write_text(dedent(driver))
    source = Source.read(tmp_path / "trainer.py")
    assert len(lint(source, Settings.selecting("MEM05"), strict=True, project=Project())) == count


def test_a_loop_in_which_another_file_takes_gradients_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    training = "def improve(model, states):\n    return torch.autograd.grad(model(states).sum(), model.parameters())\n"
    (tmp_path / "improving.py").write_text("import torch\n" + training)
    code = """
        import torch
        from improving import improve

        model = torch.nn.Linear(4, 2)
        model.load_state_dict(torch.load("model.pt"))
        states = torch.randn(8, 4)

        def run(count):
            for _ in range(count):
                print(model(states).sum().item())
                improve(model, states)
        """
    (tmp_path / "main.py").write_text(dedent(code))
    (finding,) = lint(Source.read(tmp_path / "main.py"), Settings.selecting("MEM05"), strict=True, project=Project())
    assert finding.fix is not None
    start, end = min(edit.start for edit in finding.fix.edits), max(edit.end for edit in finding.fix.edits)
    assert "improve(model" not in dedent(code)[start:end]
    assert not any("improve(model" in edit.text for edit in finding.fix.edits)


def test_a_policy_that_another_file_takes_gradients_of_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "regions.py").write_text(
        "import torch\n"
        "def trust_region_step(policy, states):\n"
        "    return torch.autograd.grad(policy.sample(states).sum(), policy.parameters())\n"
    )
    code = """
        import torch
        from regions import trust_region_step

        policy = torch.nn.Linear(4, 2)
        policy.load_state_dict(torch.load("policy.pt"))

        def sample(states):
            print(policy(states).sum().item())
            return {step}

        for states in batches:
            sample(states)
        """
    for step, function in (("trust_region_step(policy, states)", []), ("len(states)", ["def sample"])):
        (tmp_path / "main.py").write_text(script := dedent(code.format(step=step)))
        settings = Settings.selecting("MEM05")
        found = lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())
        marked = [script[finding.start :].partition("(")[0] for finding in found]
        assert [name for name in marked if name.startswith("def")] == function


@pytest.mark.parametrize("wrapper", ["net.cuda()", "nn.DataParallel(net).cuda()", "torch.compile(net)"])
def test_a_wrapped_model_is_in_the_mode_of_the_model(wrapper: str) -> None:
    code = f"""
        import torch
        from torch import nn

        net = nn.Linear(4, 2)
        wrapped = {wrapper}
        other = nn.Linear(4, 2)

        def evaluate(batches, state):
            net.eval()
            for x in batches:
                y, state = wrapped(x, state)
                state = repackage(state)
                print(y.sum().item())
            return state
        """
    assert [finding.line for finding in findings(code, "MEM05")] == [8]
    assert not findings(code.replace("net.eval()", "other.eval()"), "MEM05")


@pytest.mark.parametrize(("name", "count"), [("Agent", 1), ("TestAgent", 0)])
def test_an_agent_in_a_file_that_tries_it_out(name: str, count: int) -> None:
    code = f"""
        import torch

        class {name}:
            def __init__(self):
                self.net = torch.nn.Linear(4, 2)

            def select_action(self, state):
                return self.net(state).argmax().item()

        agent = {name}()
        for state in states:
            agent.select_action(state)
        """
    assert len(findings(code, "MEM05", path="test_agent.py")) == count


def test_a_class_of_another_file_that_runs_itself_when_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "nets.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, size):\n"
        "        super().__init__()\n"
        "        self.body = torch.nn.Linear(size, 2)\n"
        "        self.width = self.body(torch.ones(1, size)).shape[1]\n"
    )
    script = (
        "import torch\nfrom nets import Net\n\ntorch.load('x')\nfor size in range(3):\n    print(net := Net(size))\n"
    )
    (tmp_path / "main.py").write_text(script)
    assert not lint(Source.read(tmp_path / "main.py"), Settings.selecting("MEM05"), strict=True, project=Project())


TRANSFORM = """
class Spectrum(nn.Module):
    def __init__(self, size, scale):
        super().__init__()
        self.register_buffer("window", torch.hann_window(size))
        self.size = size
        {layers}

    def forward(self, x):
        return (x * self.window).abs()

spectrum = Spectrum(4, 2)
shown = []
for x, y in loader:
    shown.append(spectrum(x).detach())
"""


@pytest.mark.parametrize(
    ("layers", "count"),
    [
        ("self.scale = scale", 0),
        ("self.act = nn.ReLU()", 0),
        ("self.scale = nn.Parameter(torch.ones(4))", 1),
        ("self.lin = nn.Linear(4, 4)", 1),
        ("self.register_parameter('scale', None)", 1),
        ("self.lin = make_layer(size)", 1),
        ("self.layers = nn.ModuleList([nn.Linear(4, 4)])", 1),
        ("self.lins = [nn.Linear(4, 4)]", 1),
    ],
)
def test_a_transform_without_parameters_has_no_graph_to_record(layers: str, count: int) -> None:
    assert len(found(TRANSFORM.format(layers=layers))) == count


@pytest.mark.parametrize(
    ("use", "count"), [("print(best.tolist(), score[0].item())", 1), ("(score.mean()).backward()", 0)]
)
def test_what_becomes_of_a_result_in_another_file(tmp_path: Path, use: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    learner = """
        import torch

        class Learner:
            def __init__(self, net: torch.nn.Module):
                self.net = net

            def fit(self, faces, opt):
                opt.zero_grad()
                self.net(faces).mean().backward()
                opt.step()

            def infer(self, faces, targets):
                found = []
                for face in faces:
                    found.append(self.net(face))
                distance = (torch.stack(found) - targets).pow(2)
                score, best = distance.min(dim=1)
                return best, score
        """
    (tmp_path / "learner.py").write_text(dedent(learner))
    main = f"""
        import torch
        from learner import Learner

        recogniser = Learner(torch.nn.Linear(4, 4))
        for faces, targets in stream:
            best, score = recogniser.infer(faces, targets)
            {use}
        """
    (tmp_path / "main.py").write_text(dedent(main))
    source = Source.read(tmp_path / "learner.py")
    assert len(lint(source, Settings.selecting("MEM05"), strict=True, project=Project())) == count
