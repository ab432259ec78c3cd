"""Work on rows that the vectoriser has no rewrite for, with the rule that finds it; behind HEAD."""

from __future__ import annotations

HEAD = "import math\nimport random\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\n\n\n"


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
