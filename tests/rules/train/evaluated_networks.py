"""Programs that evaluate a network in the mode of training, marked `found`, and what looks like them; behind SETUP."""

from __future__ import annotations

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
train_loader = [(torch.randn(2, 4), torch.tensor([0, 2])) for _ in range(3)]
test_loader = [(torch.randn(2, 4), torch.tensor([1, 2])) for _ in range(2)]

def train_epoch():
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()

"""


NETWORKS = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    def forward(self, x):
        return x + self.body(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(F.dropout(x, 0.5, training=self.training))

"""


OPTIONAL = """\
class Layer(nn.Module):
    def __init__(self, size, norm="instance", drop=False):
        super().__init__()
        self.linear = nn.Linear(4, size)
        if norm == "instance":
            self.norm = nn.InstanceNorm1d(size)
        elif norm == "batch":
            self.norm = nn.BatchNorm1d(size)
        self.drop = nn.Dropout() if drop else nn.Identity()

    def forward(self, x):
        return self.drop(self.norm(self.linear(x)))

class Pair(nn.Module):
    def __init__(self, norm="instance"):
        super().__init__()
        self.layers = nn.Sequential(Layer(4, norm), nn.ReLU(), Layer(3, norm=norm))

    def forward(self, x):
        return self.layers(x)

"""


RATES = """\
class Layer(nn.Module):
    def __init__(self, size, rate=0.0):
        super().__init__()
        self.linear, self.drop = nn.Linear(4, size), nn.Dropout(rate)

    def forward(self, x):
        return self.drop(self.linear(x))

class Pair(nn.Module):
    def __init__(self, drop_rate=0):
        super().__init__()
        self.layers = nn.Sequential(Layer(4, rate=drop_rate), nn.ReLU(), Layer(3, drop_rate))

    def forward(self, x):
        return self.layers(x)

"""


UNUSED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.linear(x)

net = Net()
"""


LOOP = """\
for x, y in test_loader:  # found
    print((net(x).argmax(1) == y).sum().item())
"""


VARIANTS = {
    "a loop over test data": LOOP,
    "a function that evaluates": """\
def evaluate(model, batches):
    hits = 0
    with torch.no_grad():
        for x, y in batches:  # found
            hits += (model(x).argmax(1) == y).sum().item()
    return hits

for epoch in range(2):
    train_epoch()
    print(evaluate(net, test_loader))
""",
    "dropout that the pass applies": UNUSED.replace("self.linear(x)", "self.drop(self.linear(x))") + LOOP,
    "batch norm in a block of a class": NETWORKS + "net = Net()\n" + LOOP,
    "functional dropout that asks for the mode": NETWORKS + "net = Functional()\n" + LOOP,
    "a layer that an option asks for": OPTIONAL + "net = Layer(3, drop=True)\n" + LOOP,
    "a layer that an option of the class around it asks for": OPTIONAL + "net = Pair('batch')\n" + LOOP,
    "a rate that the class around it passes on": RATES + "net = Pair(0.1)\n" + LOOP,
    "a rate that is out of sight": """\
import json

class Net(nn.Module):
    def __init__(self, rate=0.0):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.Dropout(rate) if rate > 0 else nn.Identity())

    def forward(self, x):
        return self.body(x)

net = Net(json.load(open('options.json'))['rate'])
"""
    + LOOP,
    "a recurrent network with dropout between its layers": "net = nn.LSTM(4, 3, 2, dropout=0.5)\n"
    + LOOP.replace("net(x)", "net(x)[0]"),
    "attention with dropout": "net = nn.MultiheadAttention(4, 1, dropout=0.1)\n"
    + LOOP.replace("net(x)", "net(x, x, x)[0]"),
    "a network of torchvision": "import torchvision\n\nnet = torchvision.models.resnet18(num_classes=3)\n" + LOOP,
    "a wrapped network": "net = nn.DataParallel(net)\n" + LOOP,
    "one function for both phases": """\
class Trainer:
    def __init__(self, model):
        self.model = model

    def batch(self, x, y, train):
        with torch.set_grad_enabled(train):
            loss = F.cross_entropy(self.model(x), y)
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item()

    def epoch(self, batches, train=True):
        for x, y in batches:
            print(self.batch(x, y, train))

    def fit(self):
        for _ in range(2):
            self.epoch(train_loader)
            self.epoch(test_loader, train=False)  # found

Trainer(net).fit()
""",
    "evaluation mode that is never left": """\
for epoch in range(3):
    train_epoch()
    net.eval()  # found
    for x, y in test_loader:
        print((net(x).argmax(1) == y).sum().item())
""",
    "training mode before the epochs alone": """\
net.train()
for epoch in range(3):
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    if epoch % 2 == 0:
        net.eval()  # found
        with torch.no_grad():
            for x, y in test_loader:
                print((net(x).argmax(1) == y).sum().item())
""",
    "an evaluation in the midst of an epoch": """\
class Trainer:
    def __init__(self, model):
        self.model = model

    def fit(self):
        for epoch in range(2):
            self.model.train()
            for i, (x, y) in enumerate(train_loader):
                opt.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                opt.step()
                if i % 2 == 1:
                    self.validate()

    @torch.no_grad()
    def validate(self):
        self.model.eval()  # found
        print(sum((self.model(x).argmax(1) == y).sum().item() for x, y in test_loader))

Trainer(net).fit()
""",
    "evaluation mode that a function does not leave": """\
def evaluate(batches):
    net.eval()  # found
    for x, y in batches:
        print((net(x).argmax(1) == y).sum().item())

for epoch in range(3):
    train_epoch()
    evaluate(test_loader)
""",
}


LOOK_ALIKES = {
    "dropout of nothing, by default": RATES + "net = Pair()\n" + LOOP,
    "dropout of nothing unless it is told": RATES + "def evaluate(net: Pair):\n    " + LOOP.replace("\n", "\n    "),
    "layers that the default of an option leaves out": OPTIONAL + "net = Layer(3)\n" + LOOP,
    "layers that the options of the class around them leave out": OPTIONAL + "net = Pair().to('cpu')\n" + LOOP,
    "layers that options out of sight may leave out": OPTIONAL
    + "import json\n\nnet = Pair(**json.load(open('options.json')))\n"
    + LOOP,
    "nothing differs between the modes": "net = nn.Linear(4, 3)\n" + LOOP,
    "dropout that nothing applies": UNUSED + LOOP,
    "dropout of nothing": "net = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.0))\n" + LOOP,
    "dropout on a recurrent network of one layer": "net = nn.LSTM(4, 3, dropout=0.5)\n"
    + LOOP.replace("net(x)", "net(x)[0]"),
    "dropout on a recurrent network that is told to have one layer": """\
class Net(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.body = nn.GRU(4, 3, layers, dropout=0.5)

    def forward(self, x):
        return self.body(x)[0]

net = Net(layers=1)
"""
    + LOOP,
    "dropout of nothing that is not made": """\
class Net(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.body = nn.Linear(4, 3)
        self.drop = nn.Dropout(p) if p > 0 else None

    def forward(self, x):
        x = self.body(x)
        return self.drop(x) if self.drop is not None else x

net = Net()
"""
    + LOOP,
    "dropout of nothing that is left out": """\
class Net(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.body = nn.Linear(4, 3)
        if p > 0:
            self.drop = nn.Dropout(p)
        else:
            self.drop = None

    def forward(self, x):
        x = self.body(x)
        return self.drop(x) if self.drop is not None else x

net = Net()
"""
    + LOOP,
    "attention without dropout": "net = nn.MultiheadAttention(4, 1)\n" + LOOP.replace("net(x)", "net(x, x, x)[0]"),
    "batch norm without statistics": "net = nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False))\n" + LOOP,
    "a network out of sight": "net = torch.hub.load('somewhere', 'net')\n" + LOOP,
    "the features of a network without dropout in them": "import torchvision\n\nvgg = torchvision.models.vgg16()\n"
    "net = nn.Sequential(*list(vgg.children())[0][:22])\n" + LOOP,
    "evaluation mode": "net.eval()\n" + LOOP,
    "training mode is switched off": "net.train(False)\n" + LOOP,
    "the flag is set": "net.training = False\n" + LOOP,
    "somebody switches the mode": "def evaluation(module):\n    return module.eval()\n\nevaluation(net)\n" + LOOP,
    "training data": LOOP.replace("test_loader", "train_loader"),
    "Monte Carlo dropout": """\
def mc_dropout(batches):
    with torch.no_grad():
        for x, y in test_loader:
            print(torch.stack([net(x) for _ in range(10)]).std(0).mean().item())

mc_dropout(test_loader)
""",
    "dropout that is asked for": """\
def predict_with_dropout():
    net.train()
    with torch.no_grad():
        for x, y in test_loader:
            print(net(x).mean().item())

predict_with_dropout()
""",
    "training mode at each epoch": """\
for epoch in range(3):
    net.train()
    train_epoch()
    net.eval()
    for x, y in test_loader:
        print((net(x).argmax(1) == y).sum().item())
""",
    "evaluation behind the epochs": """\
for epoch in range(3):
    train_epoch()
net.eval()
for x, y in test_loader:
    print((net(x).argmax(1) == y).sum().item())
""",
    "evaluation behind the last epoch": """\
for epoch in range(3):
    train_epoch()
    if epoch == 2:
        net.eval()
        for x, y in test_loader:
            print((net(x).argmax(1) == y).sum().item())
""",
    "evaluation before the program ends": """\
for epoch in range(3):
    train_epoch()
    if epoch > 1:
        net.eval()
        for x, y in test_loader:
            print((net(x).argmax(1) == y).sum().item())
        break
""",
    "evaluation mode from the beginning": """\
net.eval()
for epoch in range(3):
    train_epoch()
    net.eval()
    for x, y in test_loader:
        print((net(x).argmax(1) == y).sum().item())
""",
    "training mode behind the evaluation": """\
net.train()
for epoch in range(3):
    train_epoch()
    net.eval()
    for x, y in test_loader:
        print((net(x).argmax(1) == y).sum().item())
    net.train()
""",
    "another network in evaluation mode": """\
teacher = nn.Sequential(nn.Linear(4, 3), nn.Dropout())
for epoch in range(3):
    train_epoch()
    teacher.eval()
    for x, y in test_loader:
        print((teacher(x).argmax(1) == y).sum().item())
""",
    "a loop that trains": """\
for x, y in test_loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
}


# On the way: what other networks and other evaluations do counts not.
WAYS = """\
teacher = nn.Sequential(nn.Linear(4, 3), nn.Dropout())

def train_all(model):
    model.train()
    train_epoch()

def evaluate(model, batches):
    hits = 0
    with torch.no_grad():
        for x, y in batches:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits

"""


MISSED = {
    "the teacher is in evaluation mode": "teacher.eval()\ntrain_all(net)\nprint(evaluate(net, test_loader))\n",
    "eval() comes behind": "train_all(net)\nprint(evaluate(net, test_loader))\nnet.eval()\n",
    "train() comes between": "net.eval()\ntrain_all(net)\nprint(evaluate(net, test_loader))\n",
    "layers are out of sight, but training mode was asked for": """\
net = torch.hub.hub_model('net')
for epoch in range(3):
    train_all(net)
    print(evaluate(net, test_loader))
""",
}


# A network around another one: what counts is the mode of the inner one.
AROUND = """\
class Sampler(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

def sample(sampler, inner, batches=test_loader):
{}    with torch.no_grad():
        for x, y in batches:
            print(sampler(x).argmax(1))
{}
"""


MISSED["the inner network is in training mode"] = (
    AROUND.format("", "") + "net.eval()\ntrain_all(net)\ndrawer = Sampler(net)\nsample(drawer, net)\n"
)
