"""VEC01, VEC02 and VEC06 where each row brings a number, a test or random numbers of its own."""

from __future__ import annotations

import pytest

from tests.support import findings

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")
HEAD = "import random\nimport numpy as np\nimport torch\nfrom scipy.ndimage import zoom\n\n\n"

FOUND = {
    "sums of as many weights as each row counts": (
        "VEC06",
        """\
def ideal(hits, cut, weights: torch.Tensor, k):
    hits = hits.cpu()
    best = hits.gather(1, cut)
    return best.mean() / torch.Tensor([weights[: min(int(n), k)].sum() for n in hits.sum(1)])
""",
    ),
    "means up to a length": (
        "VEC01",
        """\
def means(x: torch.Tensor, lengths: torch.Tensor):
    out = torch.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i, : lengths[i]].mean()
    return out
""",
    ),
    "several rows of each in a list": (
        "VEC01",
        """\
def turned(x: torch.Tensor, y):
    rows, classes = [], []
    for i in range(x.size(0)):
        once = x[i].transpose(1, 2).flip(1)
        rows += [x[i], once]
        classes += [y[i] for _ in range(2)]
    rows = torch.autograd.Variable(torch.stack(rows))
    return rows, rows.mean(), torch.stack(classes)
""",
    ),
    "a first row that is made in another way": (
        "VEC01",
        """\
def pairs(tags: torch.Tensor, count):
    out = torch.zeros_like(tags)
    for i in range(tags.size(1)):
        if i == 0:
            out[:, 0] = count * count + tags[:, 0]
        else:
            out[:, i] = tags[:, i - 1] * count + tags[:, i]
    return out
""",
    ),
    "a random scale of each sample": (
        "VEC01",
        """\
class Scale:
    def __call__(self, points: torch.Tensor):
        for i in range(points.size(0)):
            scale = np.random.uniform(low=0.8, high=1.2, size=[3])
            points[i, :, 0:3] = torch.mul(points[i, :, 0:3], torch.from_numpy(scale).float())
        return points
""",
    ),
    "rows that end at a random place": (
        "VEC02",
        """\
def dropped(x: torch.Tensor, width):
    mask = torch.ones_like(x)
    for n in range(mask.size(0)):
        end = torch.randint(1, width, (1,)).item()
        mask[n, end:] = 0
    return x * mask
""",
    ),
    "slices of a volume that are brought to one size": (
        "VEC02",
        """\
def segment(volume, net, size, mask):
    for k in range(volume.shape[0]):
        part = volume[k, :, :]
        x, y = part.shape[0], part.shape[1]
        if x != size:
            part = zoom(part, (size / x, size / y), order=3)
        given = torch.from_numpy(part).unsqueeze(0).unsqueeze(0).float().cuda()
        net.eval()
        with torch.no_grad():
            mask[k] = net(given).argmax(1).cpu().numpy()
    return mask
""",
    ),
    "samples one by one where the time runs on": (
        "VEC02",
        """\
def clips(model, sounds: torch.Tensor):
    model.eval()
    begin = 0.0
    found = []
    for sound in sounds:
        with torch.no_grad():
            scores = model(sound.unsqueeze(0))
        place = 0
        while place < 10:
            found.append((begin + place, scores[0, place]))
            place += 1
        begin = begin + 5.0
    return found
""",
    ),
    "a class that says which list": (
        "VEC01",
        """\
def groups(classes: torch.Tensor, count):
    found = [[] for _ in range(count)]
    for k, one in enumerate(classes):
        found[torch.argmax(one)].append(k)
    return found
""",
    ),
    "a maximum of each row up to the first that is large": (
        "VEC01",
        """\
def first(x: torch.Tensor, least):
    for i in range(len(x)):
        if x[i].max() > least:
            return i
    return None
""",
    ),
    "numbers of elements that pass a test": (
        "VEC06",
        """\
def wanted(labels: torch.Tensor):
    return [i for i in range(len(labels)) if labels[i] != -1]
""",
    ),
    "rows that pass a test": (
        "VEC01",
        """\
def wanted(scores: torch.Tensor, boxes: torch.Tensor, least):
    kept = []
    for i in range(scores.size(0)):
        if scores[i] > least:
            kept.append(boxes[i])
    return kept
""",
    ),
    "one of two values for each element": (
        "VEC01",
        """\
def scaled(x: torch.Tensor, edge):
    found = []
    for one in x:
        if one < edge:
            found.append(one)
        else:
            found.append(one / 8)
    return torch.tensor(found)
""",
    ),
    "a list of numbers that are read row by row": (
        "VEC01",
        """\
def classes(scores: torch.Tensor):
    found = []
    for i in range(scores.size(0)):
        found.append((scores[i] * 2).argmax().item())
    return found
""",
    ),
    "a table beside a tensor whose rows say where": (
        "VEC01",
        """\
def features(edges: torch.Tensor, gains, count):
    places, found = torch.zeros(count, 2), torch.zeros(count, 1)
    for k in range(count):
        places[k, :] = edges[:, k] + 1
        found[k] = 10 ** (gains[edges[1, k], edges[0, k]] / 10)
    return places, found
""",
    ),
    "arithmetic of parts that are stacked": (
        "VEC01",
        """\
def blended(before, after, count):
    found = []
    for k in range(count):
        found.append((count - k) / count * before[k] + k / count * after[k])
    return torch.stack(found)
""",
    ),
}

LOOK_ALIKES = {
    "means of parts of any length that are stacked": """\
def pooled(parts, count):
    return torch.stack([parts[k].mean(0) + 1 for k in range(count)])
""",
    "an array whose elements are compared": """\
def above(scores, least):
    found = np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        if scores[i] >= least:
            found[i] = 1
        else:
            found[i] = 0
    return found
""",
    "parts of something unknown that fill a tensor": """\
def loaded(samples, count):
    found = torch.zeros(count, 3)
    for k in range(count):
        found[k] = samples[k] * 2
    return found
""",
    "sums of as many weights as a list says": """\
def ideal(weights: torch.Tensor, sizes):
    return torch.Tensor([weights[:n].sum() for n in sizes])
""",
    "parts of different lengths": """\
def parts(x: torch.Tensor, lengths: torch.Tensor):
    return torch.cat([x[i, : lengths[i]].exp() for i in range(len(x))])
""",
    "a list that goes on as one": """\
def forecast(x: torch.Tensor, weights, steps, size):
    last = [x[:, -k, :] for k in range(1, size + 1)]
    made = []
    for _ in range(steps):
        new = torch.cat(last, dim=-1) @ weights
        made.append(new)
        last = [new] + last[:-1]
    return torch.stack(made, dim=1)
""",
    "a list that stays one": """\
def turned(x: torch.Tensor, show):
    rows = []
    for i in range(x.size(0)):
        rows += [x[i].flip(0)]
    show(rows)
""",
    "a first row that the next ones go on from": """\
def run(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        if i == 0:
            out[0] = x[0]
        else:
            out[i] = out[i - 1] * 0.9 + x[i]
    return out
""",
    "one place that several iterations write": """\
def run(x: torch.Tensor, j):
    out = torch.zeros_like(x)
    for i in range(x.size(0)):
        if i > 2:
            out[0] = x[i]
    return out
""",
    "a sample that is changed now and then": """\
def flipped(x: torch.Tensor):
    for i in range(x.size(0)):
        if random.random() < 0.5:
            x[i] = x[i].flip(-1)
    return x
""",
    "an order of its own for each row": """\
def shuffled(x: torch.Tensor):
    for i in range(x.size(0)):
        x[i] = x[i][torch.randperm(x.size(1))] * 2
    return x
""",
    "random starts that rows are copied from": """\
def starts(self, count, size):
    noise = torch.zeros(count * count, size)
    for i in range(count):
        noise[i * count] = torch.rand(1, size)
        for j in range(1, count):
            noise[i * count + j] = noise[i * count]
    return noise
""",
    "boxes that others take away": """\
def nms(boxes: torch.Tensor, order: torch.Tensor, overlap, most):
    kept = []
    for i in range(len(boxes)):
        one = boxes[order[i]]
        if one[4] > 0:
            kept.append(one)
            for j in range(i + 1, len(boxes)):
                other = boxes[order[j]]
                if torch.dist(one, other) > most:
                    other[4] = 0
    return kept
""",
    "names of what passes a test": """\
def named(scores: torch.Tensor, names, least):
    return [name for name, score in zip(names, scores) if score > least]
""",
    "words that a tensor of numbers may have become": """\
def drawn(labels, words):
    lines = []
    if words is not None:
        assert torch.is_tensor(labels)
        names = []
        for i in range(labels.size(0)):
            names.append(words[labels[i].item()])
        labels = names
    for i, label in enumerate(labels):
        if label == "dummy":
            continue
        lines.append((i, label))
    return lines
""",
    "elements of a list that pass a test": """\
def wanted(items, least):
    return [item for item in items if item > least]
""",
    "a network that is given what it made before": """\
def generate(model, start: torch.Tensor, count):
    model.eval()
    state = None
    for i in range(len(start)):
        with torch.no_grad():
            out, state = model(start[i].unsqueeze(0), state)
    return out
""",
}


@pytest.mark.parametrize("name", FOUND)
def test_rows_with_numbers_of_their_own_are_found(name: str) -> None:
    rule, code = FOUND[name]
    assert [finding.code for finding in findings(HEAD + code, *ROW_RULES)] == [rule]


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_looks_alike_is_not(name: str) -> None:
    assert not findings(HEAD + LOOK_ALIKES[name], *ROW_RULES)


def test_both_branches_that_append_are_a_choice() -> None:
    (choice,) = findings(HEAD + FOUND["one of two values for each element"][1], "VEC01")
    (mask,) = findings(HEAD + FOUND["rows that pass a test"][1], "VEC01")
    assert "torch.where" in choice.message
    assert "x[mask]" in mask.message


@pytest.mark.parametrize(("where", "count"), [(".cuda()", 2), ("", 0)])
def test_extremes_of_a_batch_on_the_device(where: str, count: int) -> None:
    code = "def run(dataset, most):\n    loader = torch.utils.data.DataLoader(dataset)\n"
    code += (
        f"    for x, y in loader:\n        y = y['classes'][0]{where}\n        assert max(y) < most and min(y) >= 0\n"
    )
    assert len(findings(HEAD + code, "VEC01")) == count


NETWORK = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def masked(self, x):
        x[:, 0] = 0
        print(x.shape)
        return x

    def forward(self, x):
        {line}
        return self.layer(self.masked(x))


def scores(sounds: torch.Tensor):
    net = Net()
    net.eval()
    begin, found = 0.0, []
    for sound in sounds:
        with torch.no_grad():
            made = net(sound.unsqueeze(0))
        found.append((begin, made))
        begin = begin + 5.0
    return found
"""


@pytest.mark.parametrize(
    ("line", "count"), [("x = x * 2", 1), ("self.last = x", 0), ("self.seen[0] = x", 0), ("self.seen.append(x)", 0)]
)
def test_a_network_of_the_file_is_one_that_keeps_nothing(line: str, count: int) -> None:
    assert len(findings(HEAD + NETWORK.format(line=line), *ROW_RULES)) == count


LENGTHS = """\
def count(net: torch.nn.Linear, loader: torch.utils.data.DataLoader):
    right = total = 0
    for x, y, lengths in loader:
        guess = net(x.cuda()).argmax(-1)
        y = y.cuda()
        for p, t, n in zip(guess, y, lengths):
            {body}
    return right, total
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("right += (p[:n] == t[:n]).sum(); total += n", 1),
        ("p, t = p[:n], t[:n]; right += torch.all(p.eq(t)).int(); total += 1", 1),
        ("right += (p[n:] == t[n:]).sum()", 1),
        ("right += (p[:n] == t[:n]).sum(); total += len(str(n))", 0),
        ("right += (p[:n] == t[:n]).cumsum(0)", 0),  # of another length in each row
    ],
)
def test_what_is_counted_up_to_a_length_is_counted_behind_a_mask(body: str, count: int) -> None:
    assert len(findings(HEAD + LENGTHS.format(body=body), *ROW_RULES)) == count


POOLED = """\
def pool(x: torch.Tensor, lengths):
    rows = []
    for i, n in enumerate(lengths):
        rows.append({row})
    return torch.stack(rows)
"""


@pytest.mark.parametrize(
    ("row", "count"),
    [("x[i, :n].mean(0)", 1), ("x[i][:n].sum(0)", 1), ("x[i, :, :n].mean(0)", 0), ("x[i, :n].sort(0)[0]", 0)],
)
def test_sums_up_to_a_length_are_sums_behind_a_mask(row: str, count: int) -> None:
    assert len(findings(HEAD + POOLED.format(row=row), *ROW_RULES)) == count
