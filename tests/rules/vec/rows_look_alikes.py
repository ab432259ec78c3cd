"""What looks like work on the rows of a tensor; behind HEAD of the loops that are."""

from __future__ import annotations

LOOK_ALIKES = {
    "pictures of bands, of which numpy finds the bounds": """\
def show(out: torch.Tensor, plot):
    for s in range(out.shape[1]):
        band = out[:, s].permute(1, 2, 0).numpy()
        low, high = band.min(), band.max()
        plot((band - low) / (high - low))
""",
    "words that change places with the next one, which the next iteration reads": """\
def shuffle(words: torch.Tensor, swap: torch.Tensor):
    for i in range(words.size(1) - 1):
        this, other = words[:, i], words[:, i + 1]
        words[:, i] = torch.where(swap[:, i], other, this)
        words[:, i + 1] = torch.where(swap[:, i], this, other)
    return words
""",
    "scores that move on to the next piece of a word": """\
def join(scores: torch.Tensor, tokens: torch.Tensor, pieces):
    skipped = 0
    for i in range(len(tokens) - 1):
        if tokens[i].item() in pieces:
            skipped += 1
            scores[i + 1] += scores[i]
            scores[i] = 0
    return scores, skipped
""",
    "boxes around polygons, which have as many points as they have": """\
def boxes(polygons):
    found = torch.zeros(len(polygons), 4)
    for i, polygon in enumerate(polygons):
        points = torch.as_tensor(polygon).view(-1, 2)
        found[i, :2] = torch.min(points, dim=0).values
        found[i, 2:] = torch.max(points, dim=0).values
    return found
""",
    "distances to batches of a gallery, for want of memory": """\
def nearest(gallery: torch.Tensor, query: torch.Tensor):
    parts = []
    for i in range(gallery.shape[0] // 100):
        parts.append(torch.pairwise_distance(gallery[i * 100 : i * 100 + 100], query))
    return torch.cat(parts, 0)
""",
    "numbers that become a text": """\
def show(entropy: torch.Tensor, log):
    text = ""
    for i in range(entropy.size(0)):
        text = text + " %.2f" % entropy[i]
    log.write(text)
""",
    "numbers that become the entries of a dict": """\
def report(precision: torch.Tensor, recall: torch.Tensor):
    table = {}
    for i, p in enumerate(precision):
        table[f"class {i}"] = {"precision": p.item(), "recall": recall[i].item()}
    return table
""",
    "a tuple of tensors, as its annotation says": """\
from typing import Tuple
from torch import Tensor

def contributions(parts: Tuple[Tensor, ...]):
    return torch.stack([part.flatten().sum() for part in parts])
""",
    "images of several sizes, where a tensor goes another way": """\
@torch.inference_mode()
def enlarge(net: torch.nn.Module, prepare, images):
    images = prepare(images)
    if isinstance(images, list):
        return [net(image[None])[0] for image in images]
    return net(images)
""",
    "classes in a list in which a tensor is looked for": """\
def recall(scores, truth, edges):
    counts = [[0, 0] for _ in range(9)]
    scores = F.softmax(scores, dim=-1)
    for edge in edges:
        classes = truth[edge]
        best = torch.argmax(scores[edge])
        if best in classes:
            for c in classes:
                counts[c][0] += 1
    return np.array(counts)
""",
    "parts of a batch, one of which is of several dimensions": """\
def evaluate(model, loader):
    for batch in loader:
        for k in range(len(batch)):
            batch[k] = batch[k].cuda()
        size = batch[0].shape[0]
        print(model(batch[0]), batch[2].reshape((3, 4))[:, 0, :].reshape((size,)), torch.exp(batch[1]))
""",
    "pairs of sequences of which windows are compared": """\
def likeness(a, b):
    whole = 0
    for i in range(8, len(a)):
        whole += max(F.cosine_similarity(a[i - 8 : i], b[j - 8 : j]).mean() for j in range(8, len(b)))
    return whole


def f(x: torch.Tensor, y: torch.Tensor):
    found = torch.zeros(x.size(0), y.size(0))
    for i in range(x.size(0)):
        for j in range(y.size(0)):
            found[i, j] = likeness(x[i], y[j])
    return found
""",
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
    "lines of a list, each of a length of its own": """\
def off_diagonal(lines):
    total = 0
    for i in range(len(lines)):
        n, size = lines[i].shape[1:-1]
        products = torch.matmul(lines[i].view(n, size), lines[i].view(n, size).mT)
        total = total + products.view(-1)[1:].view(n - 1, n + 1)[..., :-1].abs().mean()
    return total
""",
    "batches of a loader made flat": """\
def f(model, data):
    total = 0
    for x, y in torch.utils.data.DataLoader(data):
        x = x.view(-1, 28 * 28)
        total += F.cross_entropy(model(x.cuda()), y.cuda()).item()
    return total
""",
    "batches of a loader by its name, made flat": """\
def f(model: torch.nn.Module, test_loader_of_all):
    total = 0
    for x, y in test_loader_of_all:
        scores = model(x.cuda().view(-1, 28 * 28))
        total += (scores.argmax(1) == y.cuda()).sum()
    return total
""",
    "a network that may keep a state from step to step": """\
class Filter:
    def __init__(self, model):
        self.model = model

    def __call__(self, x):
        n, length, d = x.shape
        self.model.start(torch.zeros(n, d, 1), length)
        found = []
        for t in range(length):
            at_t = x[:, t, :].unsqueeze(-1)
            out = self.model.forward(at_t)
            found.append(out.squeeze(-1))
        return torch.stack(found, dim=1)
""",
    "objects of a class that compute with their tensors": """\
class Beam:
    def __init__(self, size):
        self.scores = torch.zeros(size)

    def best(self):
        return torch.sort(self.scores, 0, True)

    def word(self, place):
        return [int(score) for score in self.scores[place]]


def f(n, size):
    beams = [Beam(size) for _ in range(n)]
    every_score, every_word = [], []
    for i in range(n):
        scores, places = beams[i].best()
        every_score += [scores[:4]]
        words = [beams[i].word(place) for place in places[:4]]
        every_word += [words]
    return every_score, every_word
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
    "axes of a grid": """\
def f(x):
    axes = [torch.arange(size).float() for size in tuple(x.shape)]
    grid = torch.meshgrid(axes)
    return torch.cat([axis.reshape(-1, 1).to(x.device) for axis in grid], dim=1)
""",
    "classes that are wanted": """def f(data, classes):
    return data[torch.stack([data.targets == number for number in classes]).any(0)]
""",
    "near neighbours": """\
def f(points: torch.Tensor, table, limit):
    close = []
    for i, point in enumerate(points):
        for j in table.nearby(i):
            if (point - points[j]).pow(2).sum().item() < limit:
                close.append((j, i))
    return close
""",
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
    return found
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
