"""What looks like loops that take rows one by one for one tensor to be made of them, and is none."""

from __future__ import annotations

SILENT = {
    "losses of which only some are joined": """\
def losses(output, target, shown):
    criterion = torch.nn.MSELoss(reduction="none")
    outs, truths = output.split(1, 1), target.split(1, 1)
    found = []
    for j in range(output.size(1)):
        found.append(criterion(outs[j].squeeze(), truths[j].squeeze()))
    found = [loss for loss in found if shown(loss)]
    return torch.cat(found, dim=1)
""",
    "losses of which another list is made for the caller": """\
def losses(output, target, shown):
    criterion = torch.nn.MSELoss(reduction="none")
    outs, truths = output.split(1, 1), target.split(1, 1)
    found = []
    for j in range(output.size(1)):
        found.append(criterion(outs[j].squeeze(), truths[j].squeeze()))
    return [shown(loss) for loss in found]
""",
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
    "differences of which one is given another value": """\
def bend(x: torch.Tensor):
    steps = []
    for i in range(x.size(1) // 2):
        steps.append(x[:, i, :] - x[:, i + 1, :])
    steps[0] = None
    return F.mse_loss(steps[1], steps[2])
""",
    "differences of which the list is handed on": """\
def bend(x: torch.Tensor, show):
    steps = []
    for i in range(x.size(1) // 2):
        steps.append(x[:, i, :] - x[:, i + 1, :])
    show(steps)
    return F.mse_loss(steps[1], steps[2])
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
}
