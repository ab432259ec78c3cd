"""Passes amid training that record a graph which nobody uses, marked `here`; behind SETUP of the evaluations."""

from __future__ import annotations

WHILE_TRAINING = {
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
    "one epoch that trains where it gets an optimizer": """def run(net, batches, optimizer=None):
    total = 0.0
    for x, y in batches:
        loss = crit(net(x), y)  # here
        if optimizer:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total

print(run(model, loader, opt), run(model, val_loader))
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
    "a target network that training does not reach": """\
target = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
for x, y in loader:
    best = target(x).max(1)[0].detach()  # here
    loss = F.mse_loss(model(x).max(1)[0], best)
    opt.zero_grad()
    loss.backward()
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
}
