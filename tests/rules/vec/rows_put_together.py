"""Loops that take rows, windows or numbers one by one, for one tensor to be made of them."""

from __future__ import annotations

FOUND = {
    "the outputs of every batch, row by row, for a stack of all": (
        "VEC01",
        """\
def outputs(net, loader):
    found = []
    with torch.no_grad():
        for x in loader:
            out = net(x.cuda()).softmax(1)
            for row in out:
                found.append(row)
    return torch.stack(found)
""",
    ),
    "the parts of every batch, each in a list of its own": (
        "VEC01",
        """\
def parts(loader, net):
    found = [[] for _ in range(3)]
    for batch in loader:
        for k, part in enumerate(batch):
            if k == 0:
                part = net(part.cuda())
            for row in part:
                found[k].append(row)
    return [torch.stack(found[k]) for k in range(len(found))]
""",
    ),
    "the parts of every batch, of which one is moved": (
        "VEC01",
        """\
def parts(loader: torch.utils.data.DataLoader, net: torch.nn.Module, device):
    found = [[] for _ in range(3)]
    for batch in loader:
        for k, part in enumerate(batch):
            if k == 0:
                part = part.to(device)
                part = net(part).cpu()
            for row in part:
                found[k].append(row)
    return [torch.stack(found[k]) for k in range(len(found))]
""",
    ),
    "rows that are stacked whenever there are enough": (
        "VEC01",
        """\
def nearest(x: torch.Tensor):
    rows, found = [], []
    for row in x:
        if len(rows) < 1000:
            rows.append(row)
        else:
            rows.append(row)
            rows = torch.stack(rows)
            found.append((rows @ x.T).topk(9).indices)
            rows = []
    rows = torch.stack(rows)
    found.append((rows @ x.T).topk(9).indices)
    return torch.cat(found)
""",
    ),
    "windows that are stacked": (
        "VEC06",
        """\
def frames(signal: torch.Tensor, length):
    count, channels = signal.shape
    windows = [signal[i : i + length] for i in range(count - length + 1)]
    return torch.stack(windows)
""",
    ),
    "windows that a loop appends": (
        "VEC01",
        """\
def walks(walk: torch.Tensor, size):
    found = []
    for j in range(walk.size(1) - size + 1):
        found.append(walk[:, j : j + size])
    return torch.cat(found)
""",
    ),
    "numbers that were collected, written element by element": (
        "VEC01",
        """\
def tridiagonal(steps):
    diagonal, beside = [], []
    for step in steps:
        diagonal.append(float(step.alpha))
        beside.append(float(step.beta))
    found = torch.zeros(len(diagonal), len(diagonal)).cuda()
    for i in range(len(diagonal)):
        found[i, i] = diagonal[i]
        if i < len(diagonal) - 1:
            found[i + 1, i] = beside[i]
            found[i, i + 1] = beside[i]
    return torch.linalg.eigvalsh(found)
""",
    ),
    "a loss for each class, with a weight that is written out": (
        "VEC06",
        """\
def loss(logits: torch.Tensor, labels: torch.Tensor):
    weights = [2.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    parts = [F.binary_cross_entropy_with_logits(logits[:, i], labels[:, i]) * weights[i] for i in range(6)]
    return sum(parts) / sum(weights)
""",
    ),
    "all combinations of rows, by itertools": (
        "VEC01",
        """\
import itertools


def moved(x: torch.Tensor, count, size):
    steps = 0.1 * torch.eye(size)
    found = []
    for b, i, j in itertools.product(range(count), range(size), range(size)):
        found.append(x[b] + steps[i] - steps[j])
    return torch.stack(found)
""",
    ),
    "labels that are looked up in a dict": (
        "VEC01",
        """\
def renamed(labels: torch.Tensor, places: dict):
    for i, label in enumerate(labels):
        labels[i] = places[label.item()]
    return labels
""",
    ),
    "the density at each of many points": (
        "VEC06",
        """\
def curve(scale):
    normal = torch.distributions.Normal(0, scale)
    points = np.linspace(-5, 5, 10000)
    return np.array([normal.log_prob(float(x)) for x in points])
""",
    ),
    "a tensor that another stands in for": (
        "VEC01",
        """\
def weights(prob: torch.Tensor, label=None):
    best = prob.argmax(1)
    if label is None:
        label = best
    found = []
    for i in range(prob.size(0)):
        counts = torch.histc(label[i].cpu().float(), bins=19)
        found.append((1 / counts.clamp(min=1))[best[i]])
    return torch.stack(found)
""",
    ),
    "a function in another, which returned tensors are given to": (
        "VEC01",
        """\
def collect(loader):
    found = [[], []]
    for x, y in loader:
        found[0].append(x)
        found[1].append(y)
    return [torch.cat(one) for one in found]


def recall(queries, gallery):
    embeddings, labels = collect(queries)
    others, classes = collect(gallery)

    def at(likeness, k):
        hits = 0
        for i in range(len(likeness)):
            best = likeness[i][classes == labels[i]].sum()
            if (likeness[i] > best).sum() < k:
                hits += 1
        return hits

    return at(embeddings @ others.T, 1)
""",
    ),
    "frames of a signal, whose ends move on": (
        "VEC01",
        """\
def embeddings(net, samples, size, shift, batch):
    signal = torch.from_numpy(samples).float().cuda()
    frames = torch.zeros(batch, size).cuda()
    begin, end, count, found = 0, size, 0, []
    while end < signal.shape[0]:
        frames[count, :] = signal[begin:end]
        begin = begin + shift
        end = begin + size
        count = count + 1
        if count == batch:
            found.append(net(frames))
            count = 0
            frames = torch.zeros(batch, size).cuda()
    return torch.cat(found)
""",
    ),
    "windows that a while loop appends": (
        "VEC01",
        """\
def windows(x: torch.Tensor, size, shift):
    start, found = 0, []
    while start + size <= x.shape[0]:
        found.append(x[start : start + size, ...])
        start += shift
    return torch.stack(found, 0)
""",
    ),
    "windows some steps apart": (
        "VEC01",
        """\
def windows(x: torch.Tensor, size, shift):
    found = []
    for start in range(0, x.shape[0] - size + 1, shift):
        found.append(x[start : start + size])
    return torch.stack(found, 0)
""",
    ),
    "the energy of each frame, of which both ends move on": (
        "VEC01",
        """\
def energies(signal: torch.Tensor, count, size, shift):
    found = torch.zeros(count)
    begin, end, k = 0, size, 0
    while k < count:
        found[k] = torch.sum(signal[begin:end].pow(2))
        begin += shift
        end += shift
        k += 1
    return found
""",
    ),
    "rows of an array that are picked whole, by several indices": (
        "VEC06",
        """\
class Groups(torch.utils.data.Dataset):
    def __getitem__(self, item):
        return torch.stack([self.channels[i, :, :] for i in self.groups[item]], dim=1)
""",
    ),
    "a list that has the name of an attribute": (
        "VEC01",
        """\
def counted(x: torch.Tensor, net):
    features = []
    for i in range(x.size(0)):
        features.append(torch.histc(x[i], bins=net.features))
    return torch.stack(features)
""",
    ),
    "a function that nobody in sight calls with anything else": (
        "VEC01",
        """\
def at(likeness, classes, k):
    hits = 0
    for i in range(len(likeness)):
        best = likeness[i][classes].sum()
        if (likeness[i] > best).sum() < k:
            hits += 1
    return hits


def recall(x: torch.Tensor, classes):
    return at(x @ x.T, classes, 1)
""",
    ),
    "losses of joints, of which each is averaged before all are joined": (
        "VEC02",
        """\
def losses(output, target):
    criterion = torch.nn.MSELoss(reduction="none")
    outs, truths = output.split(1, 1), target.split(1, 1)
    found = []
    for j in range(output.size(1)):
        found.append(criterion(outs[j].squeeze(), truths[j].squeeze()))
    found = [loss.mean(dim=1).unsqueeze(1) for loss in found]
    return torch.cat(found, dim=1)
""",
    ),
}
