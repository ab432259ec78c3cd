"""Rows, windows and numbers that a loop takes one by one, only for one tensor to be made of them."""

from __future__ import annotations

import pytest

from tests.rules.vec.rows_without_rewrite import HEAD
from tests.support import findings, fixed

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")

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
}

SILENT = {
    "rows that are shown as well": """\
def outputs(x: torch.Tensor, show):
    found = []
    for row in x.cuda():
        found.append(row)
        show(row)
    return torch.stack(found)
""",
    "rows of a list that the caller gets": """\
def outputs(x: torch.Tensor):
    found = []
    for row in x.cuda():
        found.append(row)
    return found
""",
    "rows of a list that is handed on as well": """\
def outputs(x: torch.Tensor, save):
    found = []
    for row in x.cuda():
        found.append(row)
    save(found)
    return torch.stack(found)
""",
    "images of a list": """\
def batch(images):
    found = []
    for image in images:
        found.append(image)
    return torch.stack(found)
""",
    "parts of every batch, none of which is moved": """\
def parts(loader: torch.utils.data.DataLoader):
    found = [[] for _ in range(3)]
    for batch in loader:
        for k, part in enumerate(batch):
            for row in part:
                found[k].append(row)
    return [torch.stack(found[k]) for k in range(len(found))]
""",
    "outputs of several heads for one moved batch": """\
def outputs(loader: torch.utils.data.DataLoader, net: torch.nn.Module, device):
    found = []
    for x in loader:
        x = x.to(device)
        x = net(x)
        for head in x:
            found.append(head)
    return torch.stack(found)
""",
    "rows that chance picks": """\
def some(x: torch.Tensor):
    found = []
    for row in x.cuda():
        if random.random() < 0.5:
            found.append(row)
    return torch.stack(found)
""",
    "beginnings, each longer than the last": """\
def prefixes(x: torch.Tensor):
    return torch.cat([x[: i + 1] for i in range(len(x))])
""",
    "batches of rows": """\
def outputs(x: torch.Tensor):
    return torch.cat([x[i : i + 64] for i in range(0, len(x), 64)])
""",
    "frames as long as the one before says": """\
def frames(signal: torch.Tensor, count, size, steps):
    found = torch.zeros(count, size)
    begin, end, k = 0, size, 0
    while k < count:
        found[k, : end - begin] = signal[begin:end]
        begin = end
        end = begin + steps[k]
        k += 1
    return found
""",
    "frames of a signal that changes": """\
def frames(signal: torch.Tensor, count, size, shift):
    found = torch.zeros(count, size)
    begin, k = 0, 0
    while k < count:
        found[k] = signal[begin : begin + size]
        signal = signal * 0.9
        begin += shift
        k += 1
    return found
""",
    "frames of a signal that is changed in place": """\
def frames(signal: torch.Tensor, size, shift):
    found = []
    begin = 0
    while begin + size <= signal.shape[0]:
        found.append(signal[begin : begin + size].clone())
        signal[begin + shift :] *= 0.9
        begin += shift
    return torch.stack(found)
""",
    "contexts of what is generated meanwhile": """\
def generated(net, total: int, size: int):
    made = torch.zeros(total)
    contexts, begin = [], 0
    while begin + size < total:
        contexts.append(made[begin : begin + size])
        made[begin + size] = net(made[begin : begin + size])
        begin += 1
    return torch.stack(contexts), made
""",
    "batches of a while loop": """\
def distances(x: torch.Tensor, y: torch.Tensor, size):
    found, begin = [], 0
    while begin < x.shape[0]:
        found.append(torch.cdist(x[begin : begin + size], y))
        begin += size
    return torch.cat(found)
""",
    "windows of a table that a module makes once": """\
class Banded(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        line, found, begin = torch.arange(64.0), [], 0
        while begin + size <= 64:
            found.append(line[begin : begin + size])
            begin += 1
        self.register_buffer("bands", torch.stack(found))
""",
    "a few rows that have a name each": """\
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        query, key, value = [self.project(part) for part in x]
        return query @ key.T @ value
""",
    "a list beside others, of which the first is a list": """\
def halves(x):
    return [x, [x]], torch.zeros(9, 3)


def total(x):
    (first, rows), _ = halves(x)
    added = 0
    for row in rows:
        added += row.norm()
    return added + first
""",
    "what is left of several that are returned": """\
def several(x):
    return torch.zeros(9, 3), torch.ones(9, 3)


def total(x):
    first, *rows = several(x)
    added = 0
    for row in rows:
        added += row.norm()
    return added + first
""",
    "frames that depend on the one before": """\
def frames(signal: torch.Tensor, count, size, shift):
    found = torch.zeros(count, size)
    last = torch.zeros(size)
    begin, k = 0, 0
    while k < count:
        found[k] = signal[begin : begin + size] + last
        last = found[k] * 0.5
        begin += shift
        k += 1
    return found
""",
    "frames of a recording that is read meanwhile": """\
def frames(read, count, size, shift):
    found = torch.zeros(count, size)
    begin, k = 0, 0
    while k < count:
        found[k] = read(k)[begin : begin + size]
        begin += shift
        k += 1
    return found
""",
    "pairs of channels that are added up": """\
def mixture(sources: torch.Tensor, count):
    return sum([sources[:, 2 * i : 2 * i + 2] for i in range(count)])
""",
    "windows that a while loop hands to the caller": """\
def windows(x: torch.Tensor, size, shift):
    start, found = 0, []
    while start + size <= x.shape[0]:
        found.append(x[start : start + size, ...])
        start += shift
    return found
""",
    "windows of a list that the caller gets": """\
def frames(signal: torch.Tensor, length):
    count, channels = signal.shape
    return [signal[i : i + length] for i in range(count - length + 1)]
""",
    "three channels, with a number for each": """\
def normalised(x: torch.Tensor):
    mean = [0.5, 0.4, 0.3]
    for c in range(x.shape[0]):
        x[c] = x[c] - mean[c]
    return x
""",
    "sums of numbers": """\
def error(found):
    losses = []
    for one in found:
        losses.append(float(one))
    total = 0
    for i in range(len(losses)):
        total += losses[i] ** 2
    return total / torch.tensor(9.0)
""",
    "nine places of a window": """\
import itertools


def summed(x: torch.Tensor, kernel: torch.Tensor):
    out = 0
    for i, j in itertools.product(range(3), range(3)):
        out = out + x[i] * kernel[j]
    return out
""",
    "labels that are looked up where there is an entry": """\
def renamed(labels: torch.Tensor, places: dict):
    for i, label in enumerate(labels):
        if label.item() in places:
            labels[i] = places[label.item()]
    return labels
""",
    "lengths that stand in for those of the caller": """\
def summed(x: torch.Tensor, parts=None):
    if parts is None:
        parts = [row for row in x]
    found = []
    for i in range(x.size(0)):
        found.append(parts[i].float().sum())
    return torch.stack(found)
""",
    "samples of a distribution": """\
def draws(scale, count):
    normal = torch.distributions.Normal(0, scale)
    return np.array([normal.sample() for _ in range(count)])
""",
    "a function that others may call": """\
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
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_made_one_tensor_is_found(name: str) -> None:
    code, loop = FOUND[name]
    assert [finding.code for finding in findings(HEAD + loop, *ROW_RULES)] == [code]
    assert fixed(HEAD + loop, *ROW_RULES) == HEAD + loop


@pytest.mark.parametrize("name", SILENT)
def test_what_is_not_is_not_reported(name: str) -> None:
    assert findings(HEAD + SILENT[name], *ROW_RULES) == []


def test_a_table_is_named_as_what_is_looked_up() -> None:
    (found,) = findings(HEAD + FOUND["labels that are looked up in a dict"][1], "VEC01")
    assert "an entry of a table for each element of `labels`" in found.message


@pytest.mark.parametrize("rounds", ["range(0, 9, 0)", "range(99999999999999999999)", "range(1, 2, 3, 4)", "range(*x)"])
def test_a_range_that_has_no_length_is_no_reason_to_fail(rounds: str) -> None:
    loop = f"def doubled(x: torch.Tensor):\n    return torch.stack([x[i] * 2 for i in {rounds}])\n"
    assert "LINT04" not in [finding.code for finding in findings(HEAD + loop, *ROW_RULES)]
