"""VEC01 and VEC06 where rows go to places, or come from them: blocks, picked elements, lists of another name's rows."""

from __future__ import annotations

import pytest

from tests.support import findings

HEAD = "import torch\n\n\n"
ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")

FOUND = {
    "rows that are repeated in blocks": (
        "VEC01",
        """\
def repeated(shape, count):
    out = torch.zeros(len(shape) * count, shape.shape[1])
    for i in range(shape.shape[0]):
        out[i * count : (i + 1) * count] = shape[i].abs()
    return out
""",
    ),
    "last states at places of which nothing is known": (
        "VEC01",
        """\
def last(packed, lengths):
    states, sizes = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    out = torch.zeros(states.size(0), states.size(2))
    for i, length in enumerate(lengths):
        out[i] = torch.cat((states[i, length - 1, :4], states[i, 0, 4:]))
    return out
""",
    ),
    "picked terms, whatever weighs them": (
        "VEC01",
        """\
def surrogate(logits: torch.Tensor, chosen: torch.Tensor, rewards):
    loss = 0
    for i in range(len(chosen)):
        loss += -logits[i][chosen[i]] * rewards[i]
    return loss
""",
    ),
    "rows at places of which nothing is known": (
        "VEC01",
        """\
def shuffled(x: torch.Tensor, places):
    out = torch.empty_like(x)
    for i, place in enumerate(places):
        out[i] = x[place]
    return out
""",
    ),
    "elements at places of which nothing is known": (
        "VEC01",
        """\
def chosen(scores, actions):
    found = []
    for t in range(len(actions)):
        found.append(scores[t, actions[t]])
    return torch.stack(found)
""",
    ),
    "inverses, with what has the shape of each matrix": (
        "LIN03",
        """\
def whitened(covariances, noise):
    found = []
    for one in covariances:
        found.append(torch.inverse(one + noise * torch.eye(one.shape[0], device=one.device)))
    return torch.stack(found)
""",
    ),
    "a product with rows of a tensor, and something else besides": (
        "LIN01",
        """\
def moved(points: torch.Tensor, rotations, shifts):
    found = []
    for i in range(points.size(0)):
        found.append(torch.mm(rotations[i], points[i].t()).t() + shifts[i])
    return torch.stack(found)
""",
    ),
    "a list that the callers of a function stack": (
        "VEC01",
        """\
def distances(one: torch.Tensor, others: torch.Tensor):
    found = []
    for i in range(len(one)):
        found.append(torch.nn.functional.pairwise_distance(one[i].repeat(len(others), 1), others))
    return found


def nearest(one: torch.Tensor, others: torch.Tensor):
    found = distances(one, others)
    return torch.stack(found, 1).min(0)
""",
    ),
    "a list that gets the name of what it is made from": (
        "VEC06",
        """\
def attend(query: torch.Tensor, keys: torch.Tensor):
    scores = torch.matmul(query, keys)
    scores = scores.permute(0, 2, 1)
    scores = [torch.exp(scores[i]).cumsum(0) for i in range(len(scores))]
    scores = torch.cat(scores)
    return scores.reshape(len(query), -1)
""",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_work_on_rows_is_found(name: str) -> None:
    code, loop = FOUND[name]
    assert [finding.code for finding in findings(HEAD + loop, *ROW_RULES)] == [code]


LOOK_ALIKES = {
    "parts that may be of any length": """\
def parts(x: torch.Tensor, places):
    found = []
    for place in places:
        found.append(x[place])
    return torch.cat(found)
""",
    "rows of an array": """\
import numpy as np

def table(path, places, out: torch.Tensor):
    values = np.load(path)
    for i in range(len(out)):
        out[i] = values[i, places[i]]
    return out
""",
    "a list that one of the callers of a function walks over": """\
def distances(one: torch.Tensor, others: torch.Tensor):
    found = []
    for i in range(len(one)):
        found.append((one[i] - others).abs())
    return found


def nearest(one: torch.Tensor, others: torch.Tensor, names):
    for name, found in zip(names, distances(one, others)):
        print(name, found.shape)
    return torch.stack(distances(one, others), 1).min(0)
""",
    "marks of the classes that are there": """\
import numpy as np

def marks(target, count):
    labels = torch.zeros(count)
    for one in np.unique(target):
        if one not in (0, 255):
            labels[one - 1].fill_(1)
    return labels
""",
    "the first of each sample": """\
def collated(samples):
    return torch.stack([sample[0] for sample in samples])
""",
    "products of what may be lists of matrices": """\
def products(left, right):
    total = 0
    for i in range(len(left)):
        total += (left[i] @ right[i]).sum()
    return total
""",
    "windows that are as long as the iteration is far": """\
def pyramid(x: torch.Tensor, levels):
    total = x.amax(-1)
    for level in range(1, levels):
        for start in (0, 2):
            window = x[:, (start + torch.tensor(range(level))).tolist()]
            total += window.amax(-1)
    return total
""",
    "what was made a list of": """\
def divided(received, pilots, places):
    if not isinstance(received, torch.Tensor):
        received = list(received)
    out = torch.zeros(len(places))
    for k in range(len(places)):
        out[k] = received[places[k]] / pilots[k]
    return out
""",
    "chunks of a batch": """\
def chunked(x: torch.Tensor, size: int):
    out = torch.zeros_like(x)
    for i in range(len(x) // size):
        out[i * size : (i + 1) * size] = x[i * size : (i + 1) * size].exp()
    return out
""",
    "blocks that lie over one another": """\
def smeared(x: torch.Tensor, size: int):
    out = torch.zeros(len(x) + size)
    for i in range(len(x)):
        out[i * 2 : (i + 1) * size] = x[i]
    return out
""",
    "terms at places that grow with the row": """\
def tail(x: torch.Tensor, ends, weights):
    total = 0
    for i in range(len(x)):
        total += x[i, : ends[i]].sum() * weights[i]
    return total
""",
    "rows of a class, of which there may be any number": """\
def members(labels, wanted):
    return torch.nonzero(labels == wanted).reshape(-1)


def prototypes(x: torch.Tensor, labels: torch.Tensor):
    out = torch.zeros(10, 4)
    for k, wanted in enumerate(torch.unique(labels)):
        out[k] = torch.exp(torch.index_select(x, 0, members(labels, wanted))).mean(0)
    return out
""",
    "a list of which a part is used after it got its name": """\
def attend(scores: torch.Tensor, names):
    scores = scores.permute(0, 2, 1)
    scores = [torch.exp(scores[i]).cumsum(0) for i in range(len(scores))]
    for name, score in zip(names, scores):
        print(name, score.shape)
    return torch.cat(scores)
""",
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_not_reported(name: str) -> None:
    assert findings(HEAD + LOOK_ALIKES[name], *ROW_RULES) == []


NEIGHBOURS = """
    import numpy as np
    import torch

    def smoothness(x, n):
        rows = []
        for i in range(n - 1):
            rows.append({row})
        return {joined}
"""


@pytest.mark.parametrize(
    ("row", "joined", "count"),
    [
        ("x[:, :, i, :] - x[:, :, i + 1, :]", "torch.cat(rows).abs().mean()", 1),
        ("x[:, i] - x[:, i + 1]", "torch.stack(rows).abs().mean()", 1),
        ("x[i] - x[i + 1]", "torch.cat(rows).abs().mean()", 0),  # a list of tensors, which may be of any length
        ("x[:, :, i, :] - x[:, :, i + 1, :]", "np.concatenate(rows).mean()", 0),
    ],
)
def test_what_several_indices_take_is_of_one_shape_and_so_may_be_joined(row: str, joined: str, count: int) -> None:
    assert len(findings(NEIGHBOURS.format(row=row, joined=joined), "VEC01")) == count


RENAMED = """
    import torch

    def rate(h, power):
        return torch.log2(1 + power * torch.abs(h @ h.T)).sum()

    def rates(hs: torch.Tensor, powers):
        found = []
        for power in powers:
            rows = []
            for h in hs:
                rows.append(-rate(h, power).item())
            {after}
            found.append(rows)
        return found
"""


@pytest.mark.parametrize(
    ("after", "count"),
    [
        ("rows = sum(rows) / len(rows)", 1),
        ("rows = torch.tensor(rows).mean()", 1),
        ("total = sum(rows)", 0),  # the list is kept as well
    ],
)
def test_a_name_that_holds_the_sum_later_is_no_longer_the_list(after: str, count: int) -> None:
    assert len(findings(RENAMED.format(after=after), *ROW_RULES)) == count


SWAPPED = """
    import torch

    def swapped(x: torch.Tensor, n: int):
        a, b = torch.randperm(x.shape[-1]), torch.randperm(x.shape[-1])
        for i in range(n):
            kept = x[:, {first}]
            x[:, {first}] = x[:, {second}]
            x[:, {second}] = kept
        return x
"""


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [("b[i]", "a[i]", 0), ("b[i]", "i", 0), ("b[i], 0", "b[i], 1", 1), ("i, 0", "i, 1", 1)],
)
def test_an_iteration_may_swap_what_an_earlier_one_has_swapped(first: str, second: str, count: int) -> None:
    assert len(findings(SWAPPED.format(first=first, second=second), "VEC01")) == count
