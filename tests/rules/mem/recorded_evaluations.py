"""Evaluations that record a graph which nobody uses: a finding is expected on the lines marked `here`, behind SETUP."""

from __future__ import annotations

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

EVALUATIONS = {
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
    "a method of a network that makes a loss of its own passes": """\
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.out = nn.Linear(4, 9)

    def forward(self, words):
        return self.out(self.embedding(words))

    def nll_loss(self, words, following):
        return F.cross_entropy(self(words), following)

def score(words, following, oracle):  # here
    total = 0
    for begin in range(0, 8, 2):
        part, after = words[begin : begin + 2], following[begin : begin + 2]
        total += oracle.nll_loss(part, after).item()
    return total / 8

print(score(torch.randint(9, (8,)), torch.randint(9, (8,)), Words()))
""",
    "a network that is a part of what was handed in": """\
from types import SimpleNamespace

def predict(task, loader):  # here
    task.model.eval()
    found = []
    for x, y in loader:
        found.extend(task.model(x).argmax(1).tolist())
    return found

print(predict(SimpleNamespace(model=model), val_loader))
""",
    "a network that a helper has loaded for evaluation": """\
def load(path):
    net = nn.Linear(4, 3)
    net.load_state_dict(torch.load(path))
    net.eval()
    return net

def label(path, image):  # here
    net = load(path)
    return net(image).argmax(1).item()

class Classifier:
    def __init__(self, path):
        self.net = load(path)

    def __call__(self, image):  # here
        return self.net(image).softmax(1).tolist()

print(label("net.pt", torch.randn(1, 4)), Classifier("net.pt")(torch.randn(1, 4)))
""",
    "a sum of what is right": """def share(net, loader):  # here
    return sum((net(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader)

print(share(model, val_loader))
""",
    "a method": """class Trainer:
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
    "a network that is only switched": """\
net = nn.Linear(4, 3)
net.cuda().eval()

for x, y in val_loader:
    print((net(x).argmax(1) == y).sum().item())  # here
""",
    "a network that one of its callers has frozen": """def rate(net, batches):  # here
    net.eval()
    return sum((net(x).argmax(1) == y).sum().item() for x, y in batches)

fixed = nn.Linear(4, 3)
fixed.requires_grad_(False)
print(rate(fixed, val_loader), rate(model, val_loader))
""",
    "a network by its name that takes what arrays became": """import numpy as np

def measure(model, size, runs):  # here
    image = np.zeros((1, size), dtype=np.float32)
    for _ in range(runs):
        model(torch.from_numpy(image))

def main(make, path):
    measure(make(path), 4, 3)
""",
    "losses of a criterion out of sight": """def mean_loss(model, loader, criterion):  # here
    total = 0.0
    for x, y in loader:
        total += criterion(model(x), y)
    return total / len(loader)

def train(model, criterion, train_loader, val_loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    print(mean_loss(model, val_loader, criterion))
""",
    "a part that a lambda takes": """\
def scores_of(model, x):  # here
    hidden = model(x)
    pick = lambda i: hidden[i].softmax(0)
    return torch.stack([pick(i) for i in range(len(x))])

def evaluate(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        scores = scores_of(model, x)
        correct += (scores.argmax(1) == y).sum().item()
    return correct

print(evaluate(model, val_loader))
""",
    "losses of a criterion that the object keeps": """\
class Learner:
    def __init__(self, net, criterion):
        self.net = net
        self.criterion = criterion

    def eval_model(self, x):  # here
        loss = 0
        state = x
        for i in range(3):
            state = self.net(state)
            loss += self.criterion(state, x)
        return loss.data / 3

    def train_model(self, x, opt):
        opt.zero_grad()
        self.criterion(self.net(x), x).backward()
        opt.step()
""",
}
