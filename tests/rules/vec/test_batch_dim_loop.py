"""VEC02: samples one by one through losses, layers and functions, and the loops that have to be."""

from __future__ import annotations

import pytest

from tests.support import findings

HEAD = "import random\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")

SAMPLES = {
    "a loss for each joint": """\
class JointLoss(nn.Module):
    def __init__(self, weighted):
        super().__init__()
        self.criterion = nn.MSELoss()
        self.weighted = weighted

    def forward(self, output, target, weight):
        joints = output.size(1)
        guesses = output.flatten(2).split(1, 1)
        truths = target.flatten(2).split(1, 1)
        loss = 0
        for j in range(joints):
            guess = guesses[j].squeeze()
            truth = truths[j].squeeze()
            if self.weighted:
                loss += self.criterion(guess.mul(weight[:, j]), truth.mul(weight[:, j]))
            else:
                loss += self.criterion(guess, truth)
        return loss / joints
""",
    "a loss for each pair of pieces of one": """\
def f(output, target):
    guesses, truths = output.split(1, 1), target.split(1, 1)
    loss = 0
    for guess, truth in zip(guesses, truths):
        loss += F.mse_loss(guess, truth)
    return loss
""",
    "a method of a network for each sample": """\
def features(net: nn.Module, samples):
    samples = torch.from_numpy(samples).float().cuda()
    return torch.cat([net.extract(samples[i].unsqueeze(0)) for i in range(samples.shape[0])])
""",
    "a loss for each sequence": """\
def noise_floor(x, y, count):
    criterion = nn.MSELoss()
    floor = torch.empty(count)
    for j in range(count):
        floor[j] = criterion(x[j, :, :], y[j, :, :]).item()
    return floor.mean()
""",
    "a loss of rows and of what has the same shape": """\
def f(outputs, targets):
    total = 0
    for i in range(outputs.size(0)):
        total = total + F.cross_entropy(outputs[i], targets[i])
    return total
""",
    "a layer for each step": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 8, batch_first=True)
        self.out = nn.Linear(8, 1)

    def forward(self, x, h):
        states, h = self.rnn(x, h)
        outs = []
        for t in range(states.size(1)):
            outs.append(self.out(states[:, t, :]))
        return torch.stack(outs, dim=1), h
""",
    "one forward for each test sample": """\
def predict(model: nn.Module, samples):
    found = []
    with torch.no_grad():
        for i in range(len(samples)):
            found.append(model(samples[i].unsqueeze(0)).argmax(1).item())
    return found
""",
    "one forward for each channel": """\
def cam(model: nn.Module, image: torch.Tensor, maps: torch.Tensor):
    total = 0
    for i in range(len(maps)):
        mask = F.interpolate(maps[i][None, None], size=(224, 224))
        if mask.max() == mask.min():
            continue
        total += model(image * mask)[0, 3].item() * maps[i].cpu().numpy()
    return total
""",
    "layers for each sample, of which the caller gets a list": """\
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.mean, self.spread = nn.Linear(4, 8), nn.Linear(8, 16), nn.Linear(8, 16)

    def decode(self, z):
        hidden = torch.relu(self.hidden(z))
        return self.mean(hidden), self.spread(hidden)

    def forward(self, x):
        drawn = x.unsqueeze(1) + torch.randn(x.size(0), 9, 4)
        found = []
        for z in drawn:
            found.append(self.decode(z))
        return found
""",
    "a function of the program": """\
def scaled(row):
    low, high = row.min(), row.max()
    return (row - low) / (high - low)


def f(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        out[i] = scaled(x[i])
    return out
""",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_one_by_one_are_reported(name: str) -> None:
    (finding,) = findings(HEAD + SAMPLES[name], *ROW_RULES)
    assert finding.code == "VEC02"
    assert (finding.fix is not None) == (name == "a layer for each step")


LOOK_ALIKES = {
    "a loss for each pair of longer pieces": """\
def f(output, target):
    guesses, truths = output.split(64, 1), target.split(64, 1)
    loss = 0
    for guess, truth in zip(guesses, truths):
        loss += F.mse_loss(guess, truth)
    return loss
""",
    "features of layers": """\
def f(student, teacher):
    loss = 0
    for a, b in zip(student, teacher):
        loss += F.mse_loss(a, b)
    return loss
""",
    "layers for each of several sizes of a list": """\
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 8)

    def forward(self, levels):
        found = []
        for z in levels:
            found.append(self.hidden(z))
        return found
""",
    "a module of its own for each part": """\
class Net(nn.Module):
    def forward(self, parts: torch.Tensor):
        return torch.cat([self.heads[i](parts[i].unsqueeze(0)) for i in range(parts.size(0))])
""",
    "a state": """\
def f(cell: nn.Module, x: torch.Tensor, h):
    outs = []
    for t in range(x.size(0)):
        h = cell(x[t].unsqueeze(0), h)
        outs.append(h)
    return torch.cat(outs)
""",
    "a filter that keeps its state": """\
def f(net: nn.Module, y: torch.Tensor):
    out = torch.zeros_like(y)
    for t in range(y.size(2)):
        out[:, :, t] = net(y[:, :, t])
    return out
""",
    "a step of training for each sample": """\
def f(model, optimizer, x: torch.Tensor, y: torch.Tensor):
    for i in range(x.size(0)):
        optimizer.zero_grad()
        F.mse_loss(model(x[i].unsqueeze(0)), y[i]).backward()
        optimizer.step()
""",
    "batches for memory": """\
def f(model: nn.Module, x: torch.Tensor, size):
    with torch.no_grad():
        return torch.cat([model(x[i : i + size]) for i in range(0, len(x), size)])
""",
    "batches of a loader": """\
def f(model: nn.Module, loader):
    found = []
    with torch.no_grad():
        for x, y in loader:
            found.append((model(x.unsqueeze(0)).argmax(1) == y).float().mean())
    return torch.stack(found)
""",
    "a weight for each loss": """\
def f(losses, weights: torch.Tensor):
    total = 0
    for k, loss in enumerate(losses):
        total += weights[k] * loss
    return total
""",
    "numbers made tensors": """\
def f(nodes: torch.Tensor, count):
    edges = []
    for i in range(count):
        edges.append(torch.tensor([[int(nodes[i]), i], [i, int(nodes[i])]]))
    return torch.cat(edges, 1)
""",
    "files": """\
def f(model: nn.Module, paths):
    with torch.no_grad():
        return [model(read(path).unsqueeze(0)) for path in paths]
""",
    "pictures": """\
def f(images: torch.Tensor):
    for i in range(images.size(0)):
        save(images[i], f"{i}.png")
""",
    "rows of one class": """\
def f(x: torch.Tensor, labels: torch.Tensor, count: int):
    found = []
    for c in range(count):
        mask = labels == c
        found.append(x[mask].mean(0))
    return torch.stack(found)
""",
    "boxes that are left": """\
def f(scores: torch.Tensor, boxes: torch.Tensor):
    losses = []
    for i in range(scores.size(0)):
        kept = boxes[i][boxes[i][:, 4] != -1]
        losses.append(F.l1_loss(scores[i], overlap(kept)))
    return torch.stack(losses)
""",
    "layers of several sizes": """\
def f(nets, x: torch.Tensor, target):
    maps = [net(x) for net in nets]
    total = 0
    for i in range(len(maps)):
        total += F.mse_loss(maps[i], F.interpolate(target, size=maps[i].shape[-2:]))
    return total
""",
    "the gradient of each output": """\
def f(y: torch.Tensor, x: torch.Tensor):
    return torch.stack([torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(y))])
""",
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_not_reported(name: str) -> None:
    assert findings(HEAD + LOOK_ALIKES[name], *ROW_RULES) == []
