"""VEC01 and VEC02 where rows are marked, listed, looked up, or meet what may be rows of another tensor."""

from __future__ import annotations

import pytest

from tests.support import findings

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")
HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n\n\n"

FOUND = {
    "the smallest of each group of columns": (
        "VEC01",
        """\
def smallest(weight: torch.Tensor, kept, group):
    size = weight.abs()
    mask = torch.zeros_like(weight) == 1
    for j in range(size.shape[1]):
        if j % group == 0:
            part = size[:, j : j + group].float()
            mask.scatter_(1, j + torch.topk(part, kept, dim=1, largest=False)[1], True)
    weight[mask] = 0
""",
    ),
    "the place of the right answer in each ranking": (
        "VEC01",
        """\
def ranks(scores: torch.Tensor, answers, count):
    order = torch.argsort(scores, dim=1, descending=True)
    found = []
    for i in range(count):
        place = (order[i, :] == answers[i]).nonzero()
        assert place.size(0) == 1
        place = 1 + place.item()
        found.append({"rank": float(place), "first": 1.0 if place <= 1 else 0.0})
    return found
""",
    ),
    "noise of a strength of its own": (
        "VEC01",
        """\
def noisy(images: torch.Tensor):
    noise = torch.zeros(images.size())
    strength = np.random.uniform(0, 55, size=noise.size()[0])
    for n in range(noise.size()[0]):
        size = noise[0, :, :, :].size()
        noise[n, :, :, :] = torch.FloatTensor(size).normal_(mean=0, std=strength[n] / 255.0)
    return images + noise
""",
    ),
    "a list of each row": (
        "VEC01",
        """\
def listed(net, batch):
    features = net(batch).cpu().flatten(1)
    found = []
    for i in range(len(batch)):
        found.append(features[i].tolist())
    return found
""",
    ),
    "pieces of a tensor that was split": (
        "VEC01",
        """\
def weights(x: torch.Tensor, count, size):
    pieces = torch.split(x, 1, dim=1)
    found = []
    for x in pieces:
        found.append(F.softmax(x.contiguous().view(count, size), dim=1))
    return [one.detach() for one in found], found
""",
    ),
    "rows of a tensor and of what may be one": (
        "VEC02",
        """\
def shifted(signal, kernel):
    twice = torch.cat([signal, signal, kernel])
    return F.conv1d(twice.view(1, 1, -1), kernel.view(1, 1, -1)).view(-1)


class Memory:
    def move(self, weights: torch.Tensor, kernels):
        result = torch.zeros(weights.size())
        for b in range(self.count):
            result[b] = shifted(weights[b], kernels[b])
        return result
""",
    ),
    "returns that a flag of each row cuts": (
        "VEC01",
        """\
def returns(rewards: torch.Tensor, values: torch.Tensor, last, done, gamma):
    found = torch.zeros_like(rewards)
    for i in reversed(range(rewards.size(0))):
        if last[i]:
            following = 0 if done[i] else values[i].detach()
        else:
            following = values[i].detach()
        found[i] = rewards[i] + gamma * following
    return found
""",
    ),
}

LOOK_ALIKES = {
    "marks with a number of the iteration": """\
def groups(size: torch.Tensor, kept, group):
    mask = torch.zeros_like(size)
    for j in range(size.shape[1]):
        part = size[:, j : j + group].float()
        mask.scatter_(1, torch.topk(part, kept, dim=1)[1], j)
    return mask
""",
    "marks that the next iteration looks at": """\
def groups(size: torch.Tensor, kept, group):
    mask = torch.zeros_like(size)
    for j in range(size.shape[1]):
        part = (size * (1 - mask))[:, j : j + group]
        mask.scatter_(1, torch.topk(part, kept, dim=1)[1], 1)
    return mask
""",
    "as many places as there are": """\
def places(order: torch.Tensor, answers, count):
    found = []
    for i in range(count):
        found.append((order[i, :] == answers[i]).nonzero())
    return found
""",
    "a place in each of several files": """\
def places(files, limits: torch.Tensor):
    total = 0
    for i, name in enumerate(files):
        total += (torch.load(name) > limits[i]).nonzero().item()
    return total
""",
    "numbers of each channel": """\
def restored(images: torch.Tensor, mean, std):
    out = images.clone()
    for i in range(images.size(0)):
        out[i, :, :] = out[i, :, :] * std[i] + mean[i]
    return out
""",
    "entries that are no numbers": """\
def described(scores: torch.Tensor, names, count):
    found = []
    for i in range(count):
        found.append({"name": names[i], "half": (scores[i] / 2).item()})
    return found
""",
    "noise in a tensor that stays": """\
def noisy(images: torch.Tensor, buffer: torch.Tensor, strength):
    out = torch.zeros_like(images)
    for n in range(images.size(0)):
        out[n] = buffer.normal_(0, strength[n])
    return out
""",
    "lists of texts": """\
def read(batch, vectors):
    found = []
    for text in batch:
        found.append(vectors[text].tolist())
    return found
""",
    "lists of their own lengths": """\
def cut(x: torch.Tensor, lengths):
    found = []
    for i in range(x.shape[0]):
        found.append(x[i, : lengths[i]].tolist())
    return found
""",
    "pieces that are longer": """\
def weights(x: torch.Tensor, size):
    pieces = torch.split(x, size, dim=0)
    found = []
    for piece in pieces:
        found.append(F.softmax(piece, dim=1))
    return torch.cat(found)
""",
    "what is given no row": """\
def filled(x: torch.Tensor, texts, table):
    out = torch.zeros(len(texts), 8)
    for i in range(len(texts)):
        longest = x[i]
        out[i] = torch.tensor(table[texts[i]])
    return out, longest
""",
}


@pytest.mark.parametrize("name", FOUND)
def test_rows_that_are_marked_listed_or_looked_up_are_found(name: str) -> None:
    rule, code = FOUND[name]
    assert [finding.code for finding in findings(HEAD + code, *ROW_RULES)] == [rule]


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_looks_alike_is_not(name: str) -> None:
    assert not findings(HEAD + LOOK_ALIKES[name], *ROW_RULES)
