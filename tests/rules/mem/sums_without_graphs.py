"""Sums that keep no graph, or one that somebody needs; behind SETUP of the sums that do."""

from __future__ import annotations

from tests.rules.mem.accumulated_tensors import STEP

LOOK_ALIKES = {
    "what the way back through a flow returns": """\
class Level(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(4, 4)

    def backward(self, z):
        change = self.scale(z)
        return z - change, change.sum(1)

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList([Level() for _ in range(3)])

    def backward(self, z):
        log_det = 0
        for level in self.levels:
            z, change = level.backward(z)
            log_det += change
        return z, log_det
""",
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
    reg, h = 0.0, x
    for layer in model:
        h = layer(h)
        reg += h.abs().mean()
    loss = crit(h, y) + 1e-4 * reg
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
    net.eval()
    for noise, _ in loader:
        x = x - 0.1 * net(x + noise)
    print(x)

sample(nn.Linear(4, 4), torch.randn(2, 4))
""",
    "inner losses of meta-learning": """\
losses_q = [0 for _ in range(5)]
for x, y in loader:
    for step in range(5):
        losses_q[step] += crit(model(x), y)
opt.zero_grad()
losses_q[-1].backward()
opt.step()
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
    loss = crit(model(x), y)
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
    "where gradients may be on, of what nobody sends backward": """\
def run(net, batches, training):
    totals = torch.zeros(2)
    with torch.set_grad_enabled(training):
        for x, y in batches:
            loss = crit(net(x), y)
            totals[0] += loss * len(x)
    return totals
""",
    "where gradients are on in training only, and off for the sum": """\
def run(net, batches, training):
    totals = torch.zeros(2)
    with torch.set_grad_enabled(training):
        for x, y in batches:
            loss = crit(net(x), y)
            if training:
                opt.zero_grad()
                loss.backward()
                opt.step()
            with torch.set_grad_enabled(training and keep):
                totals[0] += loss * len(x)
    return totals
""",
    "a sum that the pass behind the loop frees, and one branch reads": """
def rollouts(spreads):
    for epoch in range(2):
        spread, outs = 0, []
        for x, y in loader:
            out = model(x)
            outs.append(out)
            spread += out.var(0).mean()
        loss = torch.cat(outs).mean()
        if spreads:
            loss = loss + spread
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "a product that the loss is made of": """\
for x, y in loader:
    likelihood = 1
    for row in x:
        likelihood = likelihood * model(row).sigmoid()
    loss = -likelihood.log().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a sum that lies in a dict too, where the loss takes it from": """
def rollouts(kept):
    for epoch in range(2):
        outs, spread = [], kept["spread"]
        for x, y in loader:
            out = model(x)
            outs.append(out)
            spread += out.var(0).mean()
        loss = torch.cat(outs).mean() + kept["spread"]
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "a sum in what looks like an evaluation, sent backward out of its dict": """
def validate(batches):
    kept = {"total": torch.zeros(())}
    total = kept["total"]
    model.eval()
    for x, y in batches:
        loss = crit(model(x), y)
        total += loss
    kept["total"].backward()
    print(total.item())
""",
}
