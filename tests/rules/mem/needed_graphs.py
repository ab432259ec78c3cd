"""Passes whose graph somebody needs, or that are no evaluation; behind SETUP of the evaluations."""

from __future__ import annotations

from tests.rules.mem.recorded_while_training import WHILE_TRAINING

NEEDED = {
    "results that leave through the dict of the caller": """\
class Trainer:
    def __init__(self, net, back):
        self.net, self.back = net, back.cuda()

    def process(self, x):
        outputs = {"depth": self.net(x)}
        self.fill(outputs)
        return (outputs["points"] - x).abs().mean()

    def fill(self, outputs):
        for _ in range(2):
            points = self.back(outputs["depth"])
            outputs["points"] = points

    def train(self, batches):
        for x, _ in batches:
            loss = self.process(x.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()

    def validate(self, batches):
        for x, _ in batches:
            with torch.no_grad():
                self.process(x.cuda())

Trainer(nn.Linear(4, 3), nn.Linear(3, 4)).train(loader)
""",
    "forces are gradients": """\
def evaluate(net, batches):
    net.eval()
    errors = []
    for x, y in batches:
        forces = net(x)
        errors.append((forces - y).abs().mean().item())
    return sum(errors)

print(evaluate(nn.Linear(4, 1), loader))
""",
    "a gradient by the input of the network": """\
def evaluate(net, batches):
    net.eval()
    errors = []
    for x, y in batches:
        slope = torch.autograd.grad(net(x).sum(), x)[0]
        errors.append((slope - y).abs().mean().item())
    return sum(errors)

print(evaluate(nn.Linear(4, 1), loader))
""",
    "a batch that asks for its gradient": """\
def evaluate(net, batches):
    net.eval()
    errors = []
    for x, y in batches:
        x.requires_grad_(True)
        errors.append((net(x) - y).abs().mean().item())
    return sum(errors)

print(evaluate(nn.Linear(4, 1), loader))
""",
    "one epoch that always gets an optimizer": """\
def run(net, batches, optimizer):
    total = 0.0
    for x, y in batches:
        loss = crit(net(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total

print(run(model, loader, opt), run(model, val_loader, opt))
""",
    "a network in evaluation mode that its owner trains": """class Tuner:
    def __init__(self):
        self.net = nn.Linear(4, 3).eval()

    def score(self, image):
        self.net.train()
        return self.net(image).mean()

(Tuner().score(torch.randn(1, 4)) ** 2).backward()
""",
    "Grad-CAM": """def generate_cam(net, image):
    net.eval()
    out = net(image)
    net.zero_grad()
    out.max().backward()
    return net[0].weight.grad.abs().mean().item()

print(generate_cam(model, torch.randn(1, 4)))
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
        return [self.a(x).argmax(1) for x in xs]

print(Pair()([x for x, _ in loader]))
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
    "a network that adapts itself to a task before it answers": """\
class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 3)

    def forward(self, data):
        shot, labels, query = data
        loss = F.cross_entropy(self.base(shot), labels)
        weight, bias = torch.autograd.grad(loss, self.base.parameters())
        return F.linear(query, self.base.weight - 0.1 * weight, self.base.bias - 0.1 * bias)

def validate(learner, tasks):
    learner.eval()
    for shot, labels, query, wanted in tasks:
        print(F.cross_entropy(learner((shot, labels, query)), wanted).item())

validate(Learner(), [(torch.randn(2, 4), torch.tensor([0, 2]), torch.randn(2, 4), torch.tensor([1, 2]))])
""",
    "a critic whose two values are starred": """class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x):
        values = (net(x) for net in (self.first, self.second))
        return tuple(values)

def update(actor, critic, states, actor_opt, critic_opt):
    wanted = torch.ones(len(states), 1)
    critic_loss = sum((value - wanted).pow(2).mean() for value in critic(states))
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    values = torch.min(*critic(actor(states)))
    loss = (0.1 - values).mean()
    actor_opt.zero_grad()
    loss.backward()
    actor_opt.step()

actor, critic = nn.Linear(4, 4), Twin()
for x, _ in loader:
    update(actor, critic, x, torch.optim.SGD(actor.parameters(), 0.1), torch.optim.SGD(critic.parameters(), 0.1))
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
class Style(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        out = self.layer(x)
        self.loss = out.mean()
        return out

style = Style().train()

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
    "shapes of one network after the other": """\
def test():
    for net in [nn.Linear(4, 3), nn.Linear(4, 8)]:
        print(net(torch.randn(2, 4)).shape)

test()
""",
    "a method of a module that hands its pass on": (
        WHILE_TRAINING["a module that trains itself"]
        .replace("        print(self.test())\n", "")
        .replace(".data.numpy())", ")")
        .replace("  # here", "")
    ),
    "a callback that may take gradients": """def each_batch(net, loader, callback):
    net.eval()
    for x, y in loader:
        callback(net(x))
""",
    "networks that all callers have frozen": """def rate(net, batches):
    net.eval()
    return sum((net(x).argmax(1) == y).sum().item() for x, y in batches)

def report(judge):
    print(rate(judge, loader))

if __name__ == "__main__":
    first, second = nn.Linear(4, 3), nn.Linear(4, 3)
    first.requires_grad_(False)
    for parameter in second.parameters():
        parameter.requires_grad = False
    print(rate(first, val_loader))
    report(judge=second)
""",
    "a network by its name that takes arrays": """import numpy as np

def measure(model, size, runs):
    image = np.zeros((size, size, 3), dtype=np.float32)
    for _ in range(runs):
        model(image, size=size)

def main(make, path):
    measure(make(path), 8, 3)
""",
    "results put into lists that a loop goes over": """net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
for episode in range(3):
    outs, rewards = [], []
    for step in range(5):
        out = net(torch.randn(4))
        [kept.append(value) for kept, value in zip((outs, rewards), (out, 1.0))]
    opt.zero_grad()
    torch.stack(outs).sum().backward()
    opt.step()
""",
    "a sum sent backward under the name of the dict that it lies in": """
def validate(batches):
    sums = {"total": torch.zeros(())}
    total = sums["total"]
    model.eval()
    for x, y in batches:
        total += crit(model(x), y)
    sums["total"].backward()
    print(total.item())
""",
    "a sum in place, sent backward under its first name": """
def validate(batches):
    first = torch.zeros(())
    total = first
    model.eval()
    for x, y in batches:
        total.add_(crit(model(x), y))
    first.backward()
    print(total.item())
""",
    "rounds of a part of a pass, as many as the options for tests say": """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

    def forward_test(self, x, test_cfg):
        refined = x.clone()
        for _ in range(test_cfg.steps):
            refined = refined + self.forward(refined)
        return refined
""",
}
