"""VEC01, VEC06 and LIN01 where the result of a row is wrapped, joined or added to something before it is a tensor."""

from __future__ import annotations

import pytest

from tests.support import findings

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")
HEAD = "import torch\n\n\n"

FOUND = {
    "elements of a list in a list that becomes a tensor": (
        "VEC06",
        """\
def following(scores: torch.Tensor, count):
    values, top = scores.topk(1)
    return torch.LongTensor([[top[i][0] for i in range(count)]])
""",
    ),
    "rows of two lists that are joined first": (
        "VEC01",
        """\
def shifted(x: torch.Tensor, step: torch.Tensor):
    up, down = [], []
    for i in range(x.size(0)):
        up.append((x[i] + step).unsqueeze(0))
        down.append((x[i] - step).unsqueeze(0))
    return torch.cat(up + down)
""",
    ),
    "scores that are picked for each step and added up": (
        "VEC01",
        """\
def gold(emissions: torch.Tensor, tags: torch.Tensor, moves: torch.Tensor):
    score = torch.zeros(1)
    for i, emission in enumerate(emissions):
        score = score + moves[tags[i + 1], tags[i]] + emission[tags[i + 1]]
    return score
""",
    ),
    "a maximum in an inner loop that goes on with nothing": (
        "VEC01",
        """\
def peaks(x: torch.Tensor, count, note):
    for i in range(x.size(0)):
        for j in range(count):
            row = x[i] * j
            row = row + 1
            note(i, j, torch.max(row))
""",
    ),
    "a maximum over all others, for each": (
        "VEC01",
        """\
def pooled(x: torch.Tensor, weights: torch.Tensor, count):
    out = torch.zeros(count)
    for i in range(count):
        out[i] = sum([torch.max(x[j] * weights[i, j]) for j in range(count) if j != i])
    return out
""",
    ),
    "the greatest element by comparisons of Python": (
        "VEC01",
        """\
def has_converged(old: torch.Tensor, new: torch.Tensor):
    return max(torch.linalg.norm(new - old, dim=1)) < 1e-3
""",
    ),
    "a maximum of each row that decides what is kept": (
        "VEC01",
        """\
def confident(probs: torch.Tensor, threshold, first):
    places, labels = [], []
    for j, x in enumerate(probs):
        if torch.max(x) > threshold:
            places.append(first + j)
            labels.append(int(torch.argmax(x)))
    return places, labels
""",
    ),
    "a class of each row that says where its number goes": (
        "VEC01",
        """\
def groups(scores: torch.Tensor, count, note):
    found = [[] for _ in range(count)]
    for i in range(scores.size(0)):
        best = torch.argmax(scores[i])
        note(i, best)
        found[best].append(i)
    return found
""",
    ),
    "distances row by row that stay a list": (
        "VEC01",
        """\
import torch.nn.functional as F

def windows(first: torch.Tensor, second: torch.Tensor, size):
    distances = []
    for i in range(len(first)):
        distances.append(F.pairwise_distance(first[[i], :].repeat(size, 1), second[i : i + size, :]))
    return distances
""",
    ),
}

SILENT = {
    "counts behind thresholds, one after the other": """\
def f(scores: torch.Tensor, note):
    steps = torch.linspace(0, 1, 50)
    for i in range(len(steps)):
        note((scores > steps[i]).sum())
""",
    "a maximum that only some rows need": """\
def f(x: torch.Tensor, wanted, note):
    for i in range(x.size(0)):
        if wanted(i):
            note(torch.max(x[i]))
""",
    "a softmax over what the last step left": """\
def f(x: torch.Tensor, state, note):
    for t in range(x.size(0)):
        state = torch.softmax(x[t] + state, 0)
        note(state)
""",
    "a maximum over the part that a mask picks": """\
def f(x: torch.Tensor, keep: torch.Tensor, note):
    for i in range(x.size(0)):
        note(torch.max(x[i][keep[i] > 0]))
""",
    "rows of a list, each of a size of its own": """\
def f(images: list, note):
    for image in images:
        note(torch.max(image))
""",
    "a maximum of each of three scales": """\
def f(x: torch.Tensor, note):
    for i in range(3):
        note(torch.max(x[i]))
""",
    "the greater of two tensors": "def f(x: torch.Tensor):\n    return max(x.mean(), x.std())\n",
    "the greatest of the sizes": "def f(x: torch.Tensor):\n    return max(x.shape) + min(x.tolist())\n",
    "the greatest of what may be a list": "def f(x):\n    return max(x)\n",
    "extremes that are only printed every now and then": """\
def f(x: torch.Tensor, verbose):
    for i in range(100):
        x = x * 0.9
        if verbose:
            print(max(x.norm(dim=1)), min(x.norm(dim=1)))
    return x
""",
    "extremes in a text that is made once": """\
signal = torch.arange(-10.0, 20.0, 5.0)
print(signal.exp())
name = "from %s to %s" % (min(signal).item(), max(signal).item())
""",
    "the greatest of what a class of tensors has in its own way": """\
def f(edges: torch.Tensor):
    return max(edges.sparse_size())
""",
    "rows that a condition on something else leaves out": """\
def f(x: torch.Tensor, count, keys):
    out = torch.zeros(count)
    for i in range(count):
        out[i] = torch.cat([x[j] for j in range(count) if keys[j] != keys[i]]).median()
    return out
""",
    "the loudest of each of the sounds that are saved": """\
import torchaudio

def f(sounds: torch.Tensor, folder):
    for i, sound in enumerate(sounds):
        torchaudio.save(f"{folder}/{i}.wav", sound / torch.abs(sound).max(), 16000)
""",
    "a sum of what an inner loop goes on with": """\
def f(x: torch.Tensor, weights: torch.Tensor, note):
    for start in x:
        point = start
        for weight in weights:
            heat = torch.outer(point, weight)
            point = (heat / heat.sum()).diagonal()
        note(point)
""",
    "a maximum after an inner loop that goes on with the row": """\
def f(x: torch.Tensor, steps, note):
    for i in range(x.size(0)):
        state = x[i]
        for _ in range(steps):
            state += 0.1 * state.roll(1)
        note(torch.max(state))
""",
    "lists of rows that are joined and returned": """\
def f(x: torch.Tensor, more):
    rows = []
    for i in range(x.size(0)):
        rows.append(x[i] + 1)
    return rows + more
""",
}


@pytest.mark.parametrize("name", FOUND)
def test_work_on_rows_is_found(name: str) -> None:
    code, body = FOUND[name]
    assert [finding.code for finding in findings(HEAD + body, *ROW_RULES)] == [code]


@pytest.mark.parametrize("name", SILENT)
def test_what_looks_alike_is_not(name: str) -> None:
    assert findings(HEAD + SILENT[name], *ROW_RULES) == []


def test_extremes_in_a_text_of_every_step_are_found() -> None:
    body = "        x = x * 0.9\n        log.write('%s' % max(x.norm(dim=1)))\n"
    (found,) = findings(HEAD + "def f(x: torch.Tensor, log):\n    for _ in range(100):\n" + body, "VEC01")
    assert "`max` of Python" in found.message


def test_comparisons_of_python_are_named_with_what_does_it_on_the_tensor() -> None:
    (found,) = findings(HEAD + "def f(x: torch.Tensor):\n    norms = x.norm(dim=1)\n    return min(norms)\n", "VEC01")
    assert "`min` of Python compares the elements of `norms`" in found.message
    assert "`torch.min`" in found.message


def test_the_message_names_the_tensor_that_the_operation_takes_a_row_of() -> None:
    code = """
        import torch

        def failed(values: torch.Tensor, scores: torch.Tensor, names):
            best, worst = {}, set()
            for i, name in enumerate(names):
                best[name] = values[i].item()
                if scores[i].sum() == 0:
                    worst.add(name)
            return best, worst
    """
    [finding] = findings(code, "VEC01")
    assert "`scores[i].sum` works on one row of `scores`" in finding.message
