"""Containers that keep no graph, or one that somebody needs; behind SETUP of those that do."""

from __future__ import annotations

from tests.rules.mem.appended_tensors import STEP

LOOK_ALIKES = {
    "states that the next step starts from": """\
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 4)

    def forward(self, inputs, state=None):
        hidden, context = self.cell(inputs[0], state)
        return hidden, [(hidden, context), inputs]

def prepare(x):
    return torch.stack((x.log(), x.sign()), 1)

def learn(net, memory, xs, ys):
    states = [None]
    for i in range(0, len(xs), 4):
        loss = crit(net(xs[i : i + 4]), ys[i : i + 4])
        loss.backward()
        grad = torch.cat([p.grad.data.view(-1) for p in net.parameters()], 0)
        weights, state = memory([prepare(loss.data), prepare(grad)], states[-1])
        states.append(state)
    return weights

def main():
    memory = Memory()
    for x, y in loader:
        learn(model, memory, x, y)
""",
    "what a graph begins with": """\
points = []
for x, y in loader:
    point = torch.zeros(3, 4, requires_grad=True)
    shifted = x.clone().detach().requires_grad_()
    model(point + shifted).sum().backward()
    points.append(point)
    points.append(shifted)
print(points)
""",
    "parts of one answer": """\
for x, y in loader:
    parts = [part.double() for part in model(x)]
    opt.zero_grad()
    crit(torch.stack(parts).float(), y).backward()
    opt.step()
""",
    "the targets of one update, of several networks": """\
others = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
for x, y in loader:
    targets = [others[i](x) for i in range(3)]
    target = torch.stack(targets).mean(0)
    loss = crit(model(x), target.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a place that is written again": "last = {}\nfor i, (x, y) in enumerate(loader):\n"
    + STEP
    + """\
    last["loss"] = loss
print(last)
""",
    "rows of an output": """\
for x, y in loader:
    out = torch.zeros(len(x), 1)
    for i, row in enumerate(x):
        out[i] = model(row)
    opt.zero_grad()
    crit(out, y).backward()
    opt.step()
""",
    "an attribute that only other files read": """\
class Stage:
    def __init__(self):
        self.outputs = []

    def clear(self):
        self.outputs.clear()

    def forward_chunks(self, chunks):
        for chunk, _ in chunks:
            self.outputs.append(model(chunk))

Stage().forward_chunks(loader)
""",
    "the list is what is backpropagated": """\
for x, y in loader:
    losses = []
    for head in (model, model):
        losses.append(crit(head(x), y))
    opt.zero_grad()
    sum(losses).backward()
    opt.step()
""",
    "stacked and sent backward after the loop": """\
losses = []
for x, y in loader:
    losses.append(crit(model(x), y))
total = torch.stack(losses).mean()
opt.zero_grad()
total.backward()
opt.step()
""",
    "returned to a caller that sends it backward": """\
def collect(batches):
    losses = []
    for x, y in batches:
        losses.append(crit(model(x), y))
    return losses

opt.zero_grad()
sum(collect(loader)).backward()
opt.step()
""",
    "returned to callers that nobody here knows": """\
def collect(net, batches):
    outs = []
    for x, y in batches:
        outs.append(net(x))
    return torch.cat(outs)
""",
    "without gradients": """\
model.eval()
losses = []
with torch.no_grad():
    for x, y in loader:
        losses.append(crit(model(x), y))
print(losses)
""",
    "a decorated function": """\
@torch.inference_mode()
def validate():
    losses = []
    for x, y in loader:
        losses.append(crit(model(x), y))
    return sum(losses) / len(losses)

print(validate())
""",
    "already a number, an array or detached": "losses = []\nfor x, y in loader:\n"
    + STEP
    + """\
    losses.append(loss.item())
    losses.append(loss.detach())
    losses.append(loss.data)
    losses.append(float(loss))
    losses.append(loss.detach().cpu().numpy())
    losses.append(model(x).argmax(1))
print(losses)
""",
    "a loss of detached tensors": "losses = []\nfor x, y in loader:\n"
    + STEP
    + """\
    pred = model(x)
    losses.append(crit(pred.detach().cpu(), y.detach().cpu()))
print(losses)
""",
    "log-probabilities of an episode": """\
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(4, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine(x), dim=1)

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters())

def select_action(state):
    probs = policy(state)
    dist = torch.distributions.Categorical(probs)
    action = dist.sample()
    policy.saved_log_probs.append(dist.log_prob(action))
    return action.item()

def finish_episode():
    policy_loss = []
    for log_prob, reward in zip(policy.saved_log_probs, policy.rewards):
        policy_loss.append(-log_prob * reward)
    optimizer.zero_grad()
    torch.cat(policy_loss).sum().backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
""",
    "what the training function returned is a number": """\
def train():
    for x, y in loader:
        opt.zero_grad()
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
    return loss.item()

metrics = {"train_losses": []}
for epoch in range(3):
    train_loss = train()
    metrics["train_losses"].append(train_loss)
print(metrics)
""",
    "filled and emptied in the same iteration": "parts = []\nfor x, y in loader:\n"
    + STEP
    + """\
    parts.append(loss)
    print(sum(parts))
    parts.clear()
""",
    "made anew in every iteration": "for x, y in loader:\n    parts = []\n"
    + STEP
    + """\
    parts.append(loss)
    print(sum(parts))
""",
    "time steps of a forward pass": """\
class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 8)

    def forward(self, xs):
        outputs = []
        for x in xs:
            outputs.append(self.cell(x))
        return len(outputs)
""",
    "unrolled optimisation": """\
def unroll(x, y):
    trajectory = []
    for _ in range(5):
        grad, = torch.autograd.grad(crit(model(x), y), x, create_graph=True)
        x = x - 0.1 * grad
        trajectory.append(model(x))
    return trajectory
""",
    "the list goes to code that nobody here knows": """\
from project.update import learn

losses = []
for x, y in loader:
    losses.append(crit(model(x), y))
learn(losses)
""",
    "kept for a second backward": """\
losses = []
for x, y in loader:
    loss = crit(model(x), y)
    loss.backward(retain_graph=True)
    losses.append(loss)
torch.stack(losses).std().backward()
""",
    "a name called loss that is numpy": """\
import numpy as np

losses = []
for x, y in loader:
    loss = np.mean((x.numpy() - y.numpy()) ** 2)
    losses.append(loss)
print(losses)
""",
    "modules, not tensors": """\
layers = []
for width in (4, 8):
    layers.append(nn.Linear(width, width))
net = nn.Sequential(*layers)
""",
    "gradients": """\
norms = []
for x, y in loader:
    opt.zero_grad()
    crit(model(x), y).backward()
    for p in model.parameters():
        norms.append(p.grad.norm())
print(norms)
""",
    "skip connections of a network": """\
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.up = nn.ModuleList([nn.Linear(8, 4), nn.Linear(8, 4)])

    def forward(self, h):
        hs = []
        for module in self.down:
            h = module(h)
            hs.append(h)
        for module in self.up:
            h = module(torch.cat([h, hs.pop()], dim=1))
        return h
""",
    "masks of the layers of one step": """\
def prune(net, masks):
    for layer, mask in zip(net, masks):
        layer.mask = mask

gates = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
for x, y in loader:
    masks = []
    for gate in gates:
        mask = gate(x).sigmoid()
        masks.append(mask)
    prune(model, masks)
    loss = crit(model(x), y) + sum(mask.mean() for mask in masks)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "caches of the layers of one pass": """\
class Decoder:
    def __init__(self, layers):
        self.layers = layers

    def step(self, x, cache):
        new_cache = []
        for old, layer in zip(cache, self.layers):
            x = layer(x, old)
            new_cache.append(x)
        return x.argmax(), new_cache

best, _ = Decoder([model]).step(torch.randn(2, 4), [None])
print(best, _[0].size())
""",
    "states of a recurrent cell": """\
cell = nn.RNNCell(4, 8)
xs, h, out = torch.randn(6, 2, 4), torch.zeros(2, 8), []
for i in range(6):
    h = cell(xs[i], h)
    out.append(h)
print(len(out), out[0].shape)
""",
    "sums of a function, which are mended where they are added up": """\
def train():
    total = 0.0
    for x, y in loader:
        opt.zero_grad()
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
        total += loss
    return total / len(loader)

curve = []
for epoch in range(3):
    epoch_loss = train()
    curve.append(epoch_loss)
print(curve)
""",
    "one result of each network": """\
nets = [model, model]
x = torch.randn(2, 4)
preds = [net(x) for net in nets]
print(preds[0].data.numpy())
""",
    "overwritten in every step": "last = {}\nfor x, y in loader:\n"
    + STEP
    + """\
    last["loss"] = loss
print(last)
""",
    "a table of numpy": """\
import numpy as np

table = np.zeros(3)
for i, (x, y) in enumerate(loader):
    loss = crit(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    table[i] = loss
print(table)
""",
    "losses that a method returns beside a number, for one backward pass later": """\
class Trainer:
    def __init__(self):
        self.losses = []

    def compute(self, x, y):
        loss = crit(model(x), y)
        return len(y), loss

    def fit(self):
        for x, y in loader:
            count, loss = self.compute(x, y)
            self.losses.append(loss)
        return torch.stack(self.losses)
""",
    "the other of two results of a method that sends one backward": """\
class Trainer:
    def __init__(self):
        self.scores = []

    def compute(self, x, y):
        crit(model(x), y).backward()
        return crit(model(x), y), model(x).sum()

    def fit(self):
        for x, y in loader:
            loss, score = self.compute(x, y)
            self.scores.append(score)
        return torch.stack(self.scores)
""",
    "a list that an optimizer of another file sends backward": """\
from surgery import Surgery

opt = Surgery(opt)
losses = []
for step, (x, y) in enumerate(loader):
    loss = crit(model(x), y)
    if k > 1:
        losses.append(loss)
    else:
        loss.backward()
    if k > 1 and step % k == 0:
        opt.pc_backward(losses)
        losses = []
    opt.step()
    opt.zero_grad()
""",
    "a list that goes out of sight, where only the other branch sends losses backward": """\
from training import finish

losses = []
for x, y in loader:
    loss = crit(model(x), y)
    if k > 1:
        losses.append(loss)
    if not k > 1:
        loss.backward()
finish(losses)
""",
}
