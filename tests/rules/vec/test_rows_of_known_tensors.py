"""VEC01, VEC06 and LIN01: what says that the rows are those of a tensor, and where their results may go."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")
HEAD = "import numpy as np\nimport torch\n\n\n"

FOUND = {
    "windows of a tensor that is one of two": (
        ["VEC06", "VEC06"],
        """\
corpus = torch.tensor(read(), dtype=torch.long)
first, rest = corpus[:1000], corpus[1000:]

def batch(split, size):
    text = first if split == "train" else rest
    starts = torch.randint(len(text) - size, (32,))
    x = torch.stack([text[i : i + size] for i in starts])
    y = torch.stack([text[1 + i : i + size + 1] for i in starts])
    return x, y
""",
    ),
    "ratios whose list is read by its elements, too": (
        ["VEC06"],
        """\
def report(hits: torch.Tensor, counts: torch.Tensor):
    ratios = [(hits[k].float() / counts[k]).item() if counts[k] > 0 else 0.0 for k in range(len(hits))]
    print("first:", ratios[0])
    return sum(ratios) / len(ratios)
""",
    ),
    "rows that go to places which the batch names": (
        ["VEC01"],
        """\
def collect(model, loader, total: int):
    kept = torch.zeros(total, 16, 2)
    with torch.no_grad():
        for x, meta in loader:
            found = model(x).cpu().float()
            for n in range(found.size(0)):
                kept[meta["index"][n], :, :] = found[n, :, :]
    return kept
""",
    ),
    "a parameter that a function of the file takes for a tensor": (
        ["VEC01"],
        """\
def peak(maps):
    return maps.view(maps.size(0), maps.size(1), -1).max(2)[1].unsqueeze(2).float()

def refine(maps):
    spots = peak(maps)
    for n in range(spots.size(0)):
        for j in range(spots.size(1)):
            place = int(spots[n][j][0])
            if place > 1:
                row = maps[n][j]
                spots[n][j] += torch.sign(row[0][place] - row[0][place - 2]) * 0.25
    return spots
""",
    ),
    "parameters that are made tensors of where they are none": (
        ["VEC01"],
        """\
def estimate(received, pilots, places):
    if not isinstance(received, torch.Tensor):
        received = torch.tensor(received, dtype=torch.complex64)
    if not torch.is_tensor(pilots):
        pilots = torch.as_tensor(pilots)
    if not isinstance(places, torch.Tensor):
        places = torch.tensor(places)
    out = torch.zeros(len(places), dtype=torch.complex64, device=received.device)
    for k in range(len(places)):
        out[k] = received[places[k]] / pilots[k]
    return out
""",
    ),
    "what autograd hands to the formula of a gradient": (
        ["VEC01", "VEC01"],
        """\
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, given):
        a, b = ctx.saved_tensors
        first = torch.zeros_like(a)
        for t in range(len(a)):
            first[t] = given[t].exp() * b[t]
        second = []
        for t in range(len(a)):
            second.append(torch.cat((a[t], given[t]), 1))
        return first, torch.stack(second)
""",
    ),
    "a parameter that its only caller fills with a tensor": (
        ["LIN01"],
        """\
def similarities(support, query):
    found = []
    for one in support:
        found.append(query.unsqueeze(1).bmm(one.unsqueeze(2)).squeeze())
    return torch.stack(found)

def compare(images, query):
    encoded = torch.stack([encode(image) for image in images])
    return similarities(encoded.view(5, 8, 64), query)
""",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_work_on_rows_is_found(name: str) -> None:
    codes, code = FOUND[name]
    assert [finding.code for finding in findings(HEAD + code, *ROW_RULES)] == codes


LOOK_ALIKES = {
    "windows of their own length": """\
def batch(text: torch.Tensor, starts: torch.Tensor, sizes: torch.Tensor):
    return torch.cat([text[i : i + sizes[i]] for i in starts])
""",
    "chunks of a size": """\
def chunks(text: torch.Tensor, places: torch.Tensor, size: int):
    return torch.cat([text[i * size : (i + 1) * size] for i in places])
""",
    "starts and ends that are a list of lengths apart": """\
def parts(text: torch.Tensor, starts: torch.Tensor, sizes: torch.Tensor):
    ends = starts + sizes
    found = []
    for i in range(len(starts)):
        found.append(text[starts[i] : ends[i]] * 2)
    return torch.cat(found)
""",
    "a tensor or what came in": """\
def batch(starts: torch.Tensor, split, other, size):
    text = torch.arange(1000) if split == "train" else other
    return torch.stack([text[i : i + size] for i in starts])
""",
    "a list that is changed by its elements": """\
def report(hits: torch.Tensor, counts: torch.Tensor):
    ratios = [hits[k].float() / counts[k] for k in range(len(hits))]
    ratios[0] = 0.0
    return torch.tensor(ratios)
""",
    "what is read from files, and goes to places": """\
def collect(numbers: torch.Tensor, places, total: int):
    kept = torch.zeros(total, 16)
    for n in range(len(numbers)):
        kept[places[n]] = torch.load(f"{numbers[n]}.pt", weights_only=True)
    return kept
""",
    "what a function of the file takes for a list": """\
def count(maps):
    if isinstance(maps, list):
        return len(maps)
    return maps.view(-1).numel()

def means(maps):
    count(maps)
    found = []
    for n in range(len(maps)):
        found.append(maps[n].mean())
    return torch.stack(found)
""",
    "the sum of what has no dimension": """\
def total(loss: torch.nn.MSELoss, x: torch.Tensor, y: torch.Tensor):
    content = torch.nn.MSELoss()(x, y)
    return sum(content)
""",
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_not_reported(name: str) -> None:
    assert findings(HEAD + LOOK_ALIKES[name], *ROW_RULES) == []


def test_a_function_of_another_file_says_what_is_a_tensor(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    peaks = "import torch\n\ndef spread(maps):\n    return maps.view(maps.size(0), -1).softmax(1)\n"
    (tmp_path / "peaks.py").write_text(peaks)
    code = """
        import torch
        from peaks import spread

        def widths(maps):
            spread(maps)
            found = []
            for n in range(len(maps)):
                found.append(maps[n].std())
            return torch.stack(found)

        def train(model, loss):  # where training is in sight, other files are read
            model.train()
            loss.backward()
        """
    (tmp_path / "main.py").write_text(dedent(code))
    source = Source.read(tmp_path / "main.py")
    found = lint(source, Settings.selecting(*ROW_RULES), strict=True, project=Project())
    assert [finding.line for finding in found] == [8]


NETWORK = """
    import torch

    class Reader(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.out = torch.nn.Linear(8, 30)

        def forward(self, sound):
            found = []
            for step in range(90):
                found.append(self.out(sound[step]))
            {joined}
            return {returned}
"""
READING = """
    import torch
    from network import Reader

    def read(model, loader, letters):
        model.eval()
        texts = []
        with torch.no_grad():
            for sound in loader:
                {target} = model(sound.cuda())
                for one in found:
                    text = ""
                    for scores in one:
                        letter = letters[scores.argmax()]
                        if letter == ".":
                            break
                        text += letter
                    texts.append(text)
        return texts

    def main(loader, letters):
        read(Reader().cuda(), loader, letters)
"""


@pytest.mark.parametrize(
    ("joined", "returned", "target", "count"),
    [
        ("found = torch.stack(found)", "found", "found", 1),
        ("found = torch.stack(found)", "found, sound.shape", "found, size", 1),
        ("size = torch.stack(found).shape", "found", "found", 0),
        ("size = torch.stack(found).shape", "found, size", "found, size", 0),
    ],
    ids=["one tensor", "a tensor and its size", "a list", "a list and a size"],
)
def test_what_a_network_of_another_file_returns(
    joined: str, returned: str, target: str, count: int, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "network.py").write_text(dedent(NETWORK.format(joined=joined, returned=returned)))
    (tmp_path / "main.py").write_text(dedent(READING.format(target=target)))
    source = Source.read(tmp_path / "main.py")
    found = lint(source, Settings.selecting(*ROW_RULES), strict=True, project=Project())
    assert len(found) == count


PATHS = """
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self, count):
            super().__init__()
            self.count = count
            self.emit = nn.Linear(8, count)
            self.moves = nn.Parameter(torch.randn(count, count))

        def {name}(self, rows):
            total = torch.zeros(1, self.count)
            for row in rows:
                sums, places = [], []
                for tag in range(self.count):
                    score = row[tag].view(1, -1).expand(1, self.count)
                    found = total + self.moves[tag].view(1, -1) + score
                    sums.append(found.logsumexp(1).view(1))
                    places.append({place})
                total = torch.cat(sums).view(1, -1)
                self.show({shown})
            return total

        def forward(self, x):
            return self.{name}(self.emit(x))
    """


@pytest.mark.parametrize(
    ("name", "place", "shown", "count"),
    [
        ("_paths", "found.argmax(1).item()", "places", 1),
        ("_paths", "len(sums)", "sums", 0),  # something else reads what is collected
        ("paths", "found.argmax(1).item()", "places", 1),  # others may call it, but nobody in sight does
    ],
)
def test_a_method_is_given_the_rows_of_a_layer(name: str, place: str, shown: str, count: int) -> None:
    code = dedent(PATHS.format(name=name, place=place, shown=shown))
    assert len(findings(code, *ROW_RULES)) == count


@pytest.mark.parametrize(("term", "count"), [("a[i].sin() + b[i].cos()", 1), ("a[i].sin() + total.cos()", 0)])
def test_a_sum_that_several_terms_are_added_to(term: str, count: int) -> None:
    code = "import torch\n\ndef add(a: torch.Tensor, b: torch.Tensor):\n    total = torch.zeros(3)\n"
    code += f"    for i in range(len(a)):\n        if a[i, 0] > 0:\n            total = total + {term}\n"
    code += "    return total\n"
    assert len(findings(code, *ROW_RULES)) == count


PICKED = """\
def picked(p, y):
    loss = 0
    for i in range(len(y)):
        loss = loss - p[i, y[i]]
    return loss / len(y)
"""
STEP = """\
from steps import picked

def train(net, loader: torch.utils.data.DataLoader):
    for x, y in loader:
        {move}
        picked(torch.log_softmax(net(x.cuda()), 1), y).backward()
"""


@pytest.mark.parametrize(("move", "count"), [("y = y.cuda()", 1), ("y = [int(one) for one in y]", 0)])
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_function_to_which_all_that_call_it_give_tensors(
    tmp_path: Path, move: str, count: int, is_elsewhere: bool
) -> None:
    (tmp_path / "pyproject.toml").touch()
    step = STEP.format(move=move)
    if is_elsewhere:
        (tmp_path / "main.py").write_text(HEAD + step)
    code = HEAD + PICKED + ("" if is_elsewhere else step.partition("\n")[2])
    (tmp_path / "steps.py").write_text(code)
    source = Source.read(tmp_path / "steps.py")
    assert len(lint(source, Settings.selecting(*ROW_RULES), strict=True, project=Project())) == count


MOVED = """\
import torch

def moved(batch):
    for key, value in batch.items():
        if {asked}:
            for i in range(len(value)):
                value[i] = value[i].cuda(non_blocking=True)
        else:
            batch[key] = value.cuda(non_blocking=True)
"""


@pytest.mark.parametrize(
    ("asked", "found"), [("isinstance(value, list)", 0), ("isinstance(value, (list,))", 0), ("value.dim() > 1", 1)]
)
def test_the_parts_of_what_was_found_to_be_a_list_are_no_rows(asked: str, found: int) -> None:
    assert len(findings(MOVED.format(asked=asked), "VEC01")) == found


LAYERS = """\
class Pair(torch.nn.Module):
    def forward(self, x):
        return [x, x + 1]

class Net(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = torch.nn.Sequential({layers}).cuda()

    def forward(self, x: torch.Tensor, target: torch.Tensor):
        found = self.layers(x)
        total = 0.0
        for i in range(x.size(0)):
            total = total + (found[i] * target[i]).sum()
        return total
"""


@pytest.mark.parametrize(
    ("layers", "count"),
    [
        ("torch.nn.Linear(8, 4), torch.nn.Tanh()", 1),
        ("Pair(), torch.nn.Tanh()", 1),
        ("*[torch.nn.Linear(a, b) for a, b in sizes]", 1),
        ("torch.nn.Linear(8, 4), Pair()", 0),
    ],
)
def test_layers_one_after_another_return_a_tensor(layers: str, count: int) -> None:
    assert len(findings(HEAD + LAYERS.format(layers=layers), *ROW_RULES)) == count


@pytest.mark.parametrize(("asked", "found"), [("isinstance(scores, list)", 0), ("scores.dim() > 1", 1)])
def test_python_adds_up_what_was_found_to_be_a_list(asked: str, found: int) -> None:
    code = f"""\
import torch

def averaged(scores: torch.Tensor):
    if {asked}:
        scores = sum(scores) / len(scores)
    return scores.softmax(1)
"""
    assert len(findings(code, "VEC01")) == found


@pytest.mark.parametrize(
    ("form", "found"), [("rows.to_sparse()", 0), ("rows.to_sparse_csr()", 0), ("rows.to_dense()", 1)]
)
def test_rows_of_a_sparse_tensor_are_left_alone(form: str, found: int) -> None:
    code = f"""\
import torch

def shared(one: torch.Tensor, rows: torch.Tensor):
    if rows.dim() > 1:
        rows = {form}
    return torch.stack([one * row for row in rows])
"""
    assert len(findings(code, "VEC06")) == found
