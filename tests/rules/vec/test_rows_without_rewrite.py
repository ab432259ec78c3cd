"""VEC01, VEC06 and VEC08 where the vectoriser has no rewrite: what is found, and what looks like it."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

HEAD = "import math\nimport random\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\n\n\n"
ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")

FOUND = {
    "a steering vector for each angle": (
        "VEC01",
        """\
def steering(angles, count):
    out = torch.zeros(count, len(angles), dtype=torch.cfloat)
    places = torch.arange(count)
    for k, angle in enumerate(angles):
        out[:, k] = torch.exp(-1j * math.pi * places * torch.sin(angle))
    return out
""",
    ),
    "a steering vector for each angle of a grid": (
        "VEC01",
        """\
def steering(count):
    grid = np.linspace(-90, 90, 181)
    vectors = []
    for angle in grid:
        vectors.append(torch.exp(1j * np.pi * torch.arange(count) * np.sin(np.deg2rad(angle))))
    return torch.stack(vectors)
""",
    ),
    "an error for each joint": (
        "VEC01",
        """\
def errors(pred, target):
    found = []
    for j in range(pred.shape[1]):
        found.append(torch.norm(pred[:, j] - target[:, j], dim=-1).mean().item())
    return np.array(found)
""",
    ),
    "rows that become an array where gradients are off": (
        "VEC01",
        """\
def features(model, loader):
    found = []
    with torch.no_grad():
        for x in loader:
            out = model(x.cuda())
            for i in range(out.shape[0]):
                found.append(out[i].cpu().numpy().flatten())
        found = np.array(found)
    return found
""",
    ),
    "rows that are drawn": (
        "VEC01",
        """\
def batch(data, size):
    chosen = random.sample(range(len(data)), k=size)
    rows = torch.empty(size, 4)
    place = 0
    for index in chosen:
        rows[place, :] = torch.squeeze(data[index])
        place += 1
    return rows
""",
    ),
    "rows of one branch or the other": (
        "VEC01",
        """\
def batch(x: torch.Tensor, masks, order: torch.Tensor, ragged):
    rows = torch.zeros(len(order), 3, 9)
    for i in range(len(order)):
        if ragged:
            rows[i, :, masks[i]] = x[order[i], :, masks[i]]
        else:
            rows[i] = x[order[i]]
    return rows
""",
    ),
    "the last state of each sequence": (
        "VEC01",
        """\
def last(states, lengths):
    found = []
    for i in range(states.size(0)):
        found.append(states[i, lengths[i] - 1])
    return torch.stack(found)
""",
    ),
    "right answers of each class": (
        "VEC01",
        """\
def right(outputs, labels):
    _, predicted = torch.max(outputs, 1)
    same = (predicted == labels).squeeze()
    counts = [0.0] * 10
    for i in range(len(labels)):
        counts[labels[i]] += same[i].item()
    return counts
""",
    ),
    "which classes meet": (
        "VEC01",
        """\
def table(logits, labels, counts):
    best = logits.argmax(1)
    hits = torch.eq(best, labels).sum()
    for guess, label in zip(best, labels):
        counts[int(label), int(guess)] += 1
    return counts, hits
""",
    ),
    "comparisons that become an array": (
        "VEC06",
        """\
def right(model, batches):
    for x, y in batches:
        y = y.cuda()
        best = torch.argmax(model(x.cuda()), dim=1)
        print(np.array([1 if a == b else 0 for a, b in zip(y, best)]))
""",
    ),
    "a grid that is filled number by number": (
        "VEC01",
        """\
n = 20
grid = torch.zeros(n * n, 2)
for i in range(n):
    for j in range(n):
        grid[i * n + j][0] = float(i) / (n - 1)
        grid[i * n + j][1] = float(j) / (n - 1)
""",
    ),
    "all pairs": (
        "VEC08",
        """\
def similarities(a, b):
    found = torch.zeros(a.size(0), b.size(0))
    for i in range(a.size(0)):
        for j in range(b.size(0)):
            found[i][j] = F.cosine_similarity(a[i].unsqueeze(0), b[j].unsqueeze(0))
    return found
""",
    ),
    "rows that are normalised by a function": (
        "VEC06",
        """\
def unit(row):
    return row / row.norm()


def f(x: torch.Tensor):
    return torch.stack([unit(row) for row in x])
""",
    ),
    "sorted elements": ("VEC01", "def f(x):\n    return sorted(F.softmax(x, dim=-1), reverse=True)[:5]\n"),
    "places in the order of elements": (
        "VEC01",
        """\
def f(roots: torch.Tensor):
    return sorted(range(roots.shape[0]), key=lambda k: abs(abs(roots[k]) - 1))
""",
    ),
    "classes that are weighted in place": (
        "VEC01",
        """\
def weighted(logits, names):
    weights = np.array(names)
    loss = F.softmax(logits, dim=-1)
    for c in range(6):
        loss[..., c] *= weights[c]
    return loss
""",
    ),
    "boxes that are clamped row by row": (
        "VEC01",
        """\
def clamped(found, sizes: torch.Tensor):
    output = 0
    for part in found:
        output = torch.cat([part, part.flip(0)])
    for i in range(output.shape[0]):
        output[i, [1, 3]] = torch.clamp(output[i, [1, 3]], 0.0, sizes[i, 0])
    return output
""",
    ),
    "places that an extremum says": (
        "VEC01",
        """\
def matched(ious: torch.Tensor):
    best, places = ious.max(1)
    _, own = ious.max(0)
    for target, prior in enumerate(own):
        places[prior] = target
    return places
""",
    ),
    "the place of each label": (
        "VEC01",
        """\
def regularised(logits, labels):
    soft = torch.full_like(logits, 0.1)
    for i in range(len(logits)):
        soft[i, labels[i]] = 0.9
    return F.cross_entropy(logits, labels) + F.mse_loss(soft, logits)
""",
    ),
    "numbers that are counted up": (
        "VEC01",
        """\
def places(count):
    found = torch.zeros(count, 1)
    for i in range(count):
        found[i, 0] = i
    return found
""",
    ),
    "right answers of each class, of a batch from elsewhere": (
        "VEC01",
        """\
def right(model, batches, size):
    correct, total = [0.0] * 10, [0.0] * 10
    for data, target in batches:
        _, pred = torch.max(model(data), 1)
        same = np.squeeze(pred.eq(target.data.view_as(pred)))
        for i in range(size):
            label = target.data[i]
            correct[label] += same[i].item()
            total[label] += 1
    return correct, total
""",
    ),
    "answers that are compared one by one": (
        "VEC06",
        """\
def accuracy(outputs, answers, count):
    _, predicted = torch.max(outputs.data, 1)
    rewards = [1 if predicted[j] == answers[j] else 0 for j in range(count)]
    return np.sum(rewards)
""",
    ),
    "products beside noise": (
        "LIN01",
        """\
def received(channels: torch.Tensor, sent: torch.Tensor, level: float):
    found = []
    for k in range(channels.shape[0]):
        clean = channels[k] @ sent
        found.append(clean + level * torch.randn_like(clean))
    return torch.stack(found)
""",
    ),
    "rows that Python adds up": (
        "VEC01",
        """\
def rate(gains, count):
    logs = torch.log(gains.det())
    return sum(logs) / count
""",
    ),
    "a window of each image": (
        "VEC01",
        """\
def windows(images: torch.Tensor, corners: torch.Tensor, side):
    ends = corners + side
    found = []
    for i in range(images.shape[0]):
        found.append(images[i, :, corners[i, 0] : ends[i, 0], corners[i, 1] : ends[i, 1]])
    return torch.stack(found)
""",
    ),
    "right answers of each sentence under a mask": (
        "VEC01",
        """\
def right(outputs, answers):
    predicted = outputs.argmax(1)
    answers = answers.view(8, -1)
    hits, words, whole = 0, 0, 0
    for row, answer in zip(predicted, answers):
        known = answer.ne(-1)
        row, answer = torch.masked_select(row, known), torch.masked_select(answer, known)
        same = row.eq(answer)
        hits += same.sum().item()
        words += same.shape[0]
        if same.sum().item() == same.shape[0]:
            whole += 1
    return hits, words, whole
""",
    ),
    "an inverse for each user beside what grows": (
        "LIN03",
        """\
def estimates(heard: torch.Tensor, spread: torch.Tensor, users):
    for k in range(users):
        noisy = heard[:, :, k] + torch.randn_like(heard[:, :, k])
        inverse = torch.linalg.inv(spread[:, :, :, k])
        found = torch.bmm(inverse, noisy.unsqueeze(2))
        if k == 0:
            together = found
        else:
            together = torch.cat((together, found), dim=-1)
    return together
""",
    ),
    "one frame after the other through a network": (
        "VEC02",
        """\
class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())

    def forward(self, x):
        return self.layers(x).flatten(1)


class Frames(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, frames, last):
        found = []
        for t in range(frames.size(1)):
            found.append(self.encoder(frames[:, t, :, :]))
        found.append(self.encoder(last))
        return torch.stack(found)
""",
    ),
}


REWRITTEN = {"rows that Python adds up"}


@pytest.mark.parametrize("name", FOUND)
def test_work_on_rows_is_found(name: str) -> None:
    code, loop = FOUND[name]
    assert [finding.code for finding in findings(HEAD + loop, *ROW_RULES)] == [code]
    if name not in REWRITTEN:
        assert fixed(HEAD + loop, *ROW_RULES) == HEAD + loop


LOOK_ALIKES = {
    "entries of a dict of frames": """\
def drive(loader, decode, still):
    wanted = [0]
    for data in loader:
        if still:
            data["view", 1] = data["view", 0]
        turned = torch.eye(4)
        for k in wanted:
            turned = torch.matmul(turned, data["turn", k - 1])
        turns = [data["turn", k] for k in wanted[1:]]
        turns = torch.stack(turns, 1)
        decode(turned, turns)
""",
    "a list in one branch and a tensor in the other": """\
def main(net, args):
    if args.style:
        _, _, start = net([torch.randn(1, 512).cuda()])
        latent = [s.detach().clone() for s in start]
    else:
        _, start, _ = net([torch.randn(1, 512).cuda()])
        latent = start.detach().clone()
    for i in range(args.steps):
        if args.style:
            loss = sum([((start[c] - latent[c]) ** 2).sum() for c in range(len(start))])
        else:
            loss = ((start - latent) ** 2).sum()
        loss.backward()
""",
    "rows that become an array, or stay a list": """\
def features(model, loader, joined):
    found = []
    with torch.no_grad():
        for x in loader:
            out = model(x.cuda())
            for i in range(out.shape[0]):
                found.append(out[i].cpu().numpy().flatten())
        if joined:
            found = np.array(found)
    return found
""",
    "batches of a loader made flat": """\
def f(model, data):
    total = 0
    for x, y in torch.utils.data.DataLoader(data):
        x = x.view(-1, 28 * 28)
        total += F.cross_entropy(model(x.cuda()), y.cuda()).item()
    return total
""",
    "how often a class is met": """\
def f(best, counts):
    for guess in best:
        counts[guess] += 1
    return counts
""",
    "a list that becomes a tensor of the same name": """\
def scaled(anchors, stride):
    anchors = [(a[0] / stride, a[1] / stride) for a in anchors]
    anchors = torch.tensor(anchors)
    return anchors.repeat(3, 1).unsqueeze(0)
""",
    "tensors of a list that are added in place": """\
def added(total: torch.Tensor, parts):
    for i in range(len(parts)):
        total[i] += parts[i]
    return total
""",
    "places that something else says": """\
def cleared(frames: torch.Tensor, ends):
    for i, end in enumerate(ends):
        if end:
            frames[i] = 0
    return frames
""",
    "keys of what is taken for a tensor": """\
def reduced(loss, x, y):
    losses = F.cross_entropy(x, y)
    return [losses[name] for name in sorted(losses.keys())]
""",
    "a collate function": """\
def collate(batch):
    images = torch.zeros(len(batch), 3, 8, 8)
    for i in range(len(batch)):
        images[i] = batch[i]
    return images
""",
    "padding": """\
def pad(sequences, length):
    out = torch.zeros(len(sequences), length)
    for i, sequence in enumerate(sequences):
        out[i, : len(sequence)] = torch.tensor(sequence)
    return out
""",
    "labels of a text": """\
def target(item, count):
    out = torch.zeros(count)
    for label in item.labels.split():
        out[int(label)] = 1
    return out
""",
    "windows": """\
def windows(walk: torch.Tensor, count, size):
    found = []
    for j in range(count):
        found.append(walk[:, j : j + size])
    return torch.cat(found)
""",
    "channels by numbers of a list": """\
def normalise(image: torch.Tensor):
    mean = [0.485, 0.456, 0.406]
    for channel, m in zip(image, mean):
        channel.sub_(m)
    return image
""",
    "a list or a tensor": """\
def head(x):
    if isinstance(x, list):
        return torch.stack([part[:, 0] for part in x], dim=1)
    return x[:, 0]
""",
    "the outputs of several stages, or of one": """\
def total(model: torch.nn.Module, x: torch.Tensor, target, criterion: torch.nn.MSELoss):
    output = model(x)
    scores = output[-1].cpu() if type(output) == list else output.cpu()
    if type(output) == list:
        loss = 0
        for o in output:
            loss += criterion(o, target)
        output = output[-1]
    else:
        loss = criterion(output, target)
    return loss, scores
""",
    "blocks of several lengths": """\
def f(sizes):
    return torch.cat([sizes.new_full((size,), i) for i, size in enumerate(sizes)])
""",
    "tensors made flat": "def f(tensors):\n    return torch.cat([t.contiguous().view(-1) for t in tensors])\n",
    "words": """\
def decode(ids: torch.Tensor, words):
    return [" ".join(words[t.item()] for t in row) for row in ids]
""",
    "sorted names": "def f(names):\n    return sorted(names, key=lambda name: len(name))\n",
    "sorted by shape": "def f(x: torch.Tensor):\n    return sorted(range(len(x)), key=lambda i: x[i].shape[0])\n",
    "noise for each row": """\
def mix(x: torch.Tensor):
    for i in range(x.size(0)):
        x[i] = x[i] * np.random.beta(1, 1)
    return x
""",
    "a list that Python adds up": "def f(x: torch.Tensor):\n    losses = [x.mean(), x.std()]\n    return sum(losses)\n",
    "an array that Python adds up": "def f(count):\n    return sum(np.zeros(count))\n",
    "sizes that Python adds up": "def f(x: torch.Tensor):\n    return sum(x.shape) + sum(x.size()) + sum(x.tolist())\n",
    "losses of a dict that Python adds up": """\
def f(model: torch.nn.Module, images, targets):
    losses = model(images, targets)
    return sum(losses.values())
""",
    "parts that Python adds up": """\
def f(x: torch.Tensor, loss, weights):
    return sum(x.chunk(3)) + sum(torch.split(x, 3)) + sum(x.unbind(0)) + sum(torch.autograd.grad(loss, weights))
""",
    "results that Python adds up": """\
def f(model: torch.nn.Module, x):
    losses = model(x)
    total = sum(losses)
    total.backward()
""",
    "windows of their own length": """\
def windows(signals: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor):
    found = []
    for i in range(signals.shape[0]):
        found.append(signals[i, starts[i] : ends[i]])
    return torch.cat(found)
""",
    "what a mask picks": """\
def known(rows: torch.Tensor, masks: torch.Tensor):
    found = []
    for i in range(rows.shape[0]):
        found.append(rows[i][masks[i] > 0])
    return torch.cat(found)
""",
    "an inverse of what grows": """\
def grown(parts: torch.Tensor, start):
    rows = start
    for i in range(parts.shape[0]):
        rows = torch.cat((rows, torch.linalg.inv(rows @ parts[i])))
    return rows
""",
    "a network that keeps what it saw": """\
class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
        self.state = 0

    def forward(self, x):
        self.state = self.layer(x) + self.state
        return self.state


class Frames(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, frames):
        found = []
        for t in range(frames.size(1)):
            found.append(self.cell(frames[:, t, :]))
        return torch.stack(found)
""",
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_not_reported(name: str) -> None:
    assert findings(HEAD + LOOK_ALIKES[name], *ROW_RULES) == []
