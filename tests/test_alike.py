"""A fix is only shown where a like place of the same function stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import findings, fixed
from torchlint.finding import Applicability
from torchlint.fixing import alike

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.model import Model

MADE = """\
import torch


def f(x, y, network):
    a = torch.ones(len(x), 1).to(x.device)
    OTHER
    return a
"""
SAME_LOOK = {
    "another device": ("b = torch.ones(3, requires_grad=True).to(y.device)", True),
    "another function of torch": ("b = torch.hann_window(3).to(y.device)", False),
    "on the device already": ("b = torch.ones(3, device=y.device)", False),
    "changed as well": ("b = torch.ones(3).to(y.device)", False),
    "a network": ("network.to(y.device)", False),
    "arguments out of sight": ("b = torch.ones(*x.shape, **network).to(y.device)", False),
    "in another function": ("return a\n\n\ndef g(y):\n    a = torch.ones(3, requires_grad=True).to(y.device)", False),
}


@pytest.mark.parametrize(("other", "is_left"), SAME_LOOK.values(), ids=SAME_LOOK)
def test_one_of_two_like_places_is_not_changed_alone(other: str, is_left: bool) -> None:
    code = MADE.replace("OTHER", other)
    first = findings(code, "XFER01")[0]
    assert first.fix is not None
    assert (first.fix.applicability is Applicability.DISPLAY) is is_left
    assert ("Line 6 has another like it" in first.fix.why) is is_left
    assert ("torch.ones(len(x), 1, device=x.device)" in fixed(code, "XFER01", unsafe=True)) is not is_left


PRODUCTS = """\
import torch


def f(x, n):
    for i, j in zip(range(9), x.steps):
        a = (torch.ones(len(x)) * i).to(x.device)
        b = OTHER
        print(a, b)
"""


@pytest.mark.parametrize(
    ("other", "is_left"),
    [
        ("(torch.ones(len(x)) * j).to(x.device)", True),
        ("(torch.ones(len(x)) * 3).to(x.device)", False),
        ("(torch.ones(len(x)) + j).to(x.device)", False),
        ("j.to(x.device)", False),
    ],
)
def test_products_of_what_is_made_are_alike_and_what_has_no_fix_stays_with_them(other: str, is_left: bool) -> None:
    made = "torch.ones(len(x), device=x.device) * i"
    assert (made in fixed(PRODUCTS.replace("OTHER", other), "XFER01", unsafe=True)) is not is_left


COPIED = """\
import torch


def f(x, n: int):
    table = torch.ones(n).to(x.device)
    places = OTHER
    return table[places]
"""


@pytest.mark.parametrize(
    ("other", "is_left"),
    [
        ("torch.LongTensor([n, 1]).to(x.device)", False),
        ("torch.IntTensor([n, 1]).to(x.device)", True),
        ("torch.IntTensor([n, 1])", False),
        ("torch.IntTensor([n, 1]) + x.to(x.device)", False),
        ("torch.load(x.path).to(x.device)", False),
    ],
)
def test_a_copy_that_has_no_fix_leaves_those_of_its_function_as_they_are(other: str, is_left: bool) -> None:
    made = fixed(COPIED.replace("OTHER", other), "XFER01", unsafe=True)
    assert ("torch.ones(n, device=x.device)" in made) is not is_left


def test_what_stands_beside_a_place_that_is_only_shown_is_shown_too() -> None:
    code = """\
import torch


class Chain:
    def __init__(self, device):
        self.device = torch.device("cuda")

    def start(self, n):
        x = torch.zeros(n, 3).to(self.device)
        for i in range(n):
            t = (torch.ones(n) * i).to(self.device)
            x = x + t
        return x

    def step(self, n, steps):
        for i in steps:
            print(ANOTHER)
"""
    made = "torch.zeros(n, 3, device=self.device)"
    assert made not in fixed(code.replace("ANOTHER", "(torch.ones(n) * i).to(self.device)"), "XFER01", unsafe=True)
    assert made in fixed(code.replace("ANOTHER", "i"), "XFER01", unsafe=True)
    drawn = code.replace("torch.ones(n) * i", "torch.rand(n) * i")
    assert made in fixed(drawn.replace("ANOTHER", "(torch.rand(n) * i).to(self.device)"), "XFER01")


def test_a_fix_for_several_places_leaves_none_that_looks_the_same() -> None:
    code = """\
import torch


def f(rows, sizes, several):
    mean = sum(sizes) / len(sizes)
    if several:
        total = torch.tensor([rows.size(0)]).cuda()
        torch.distributed.all_reduce(total)
        mean = torch.tensor([mean]).cuda()
        torch.distributed.all_reduce(mean)
        ranks = torch.tensor([float(len(rows) > 0)]).cuda()
        torch.distributed.all_reduce(ranks)
    else:
        mean = torch.tensor([mean]).cuda()
        ranks = torch.tensor([float(len(rows) > 0)]).cuda()
    return mean.item() / ranks.item()
"""
    assert len(findings(code, "XFER01")) > 1
    assert fixed(code, "XFER01", unsafe=True) == code


ROWS = """\
class Heads:
    def f(self, head, kept):
        for row in head.weight.data:
            kept.append(ROW)

    def g(self, a, b):
        a.weight.data = b.weight.data.clone()
"""
KEPT_ROWS = ROWS.replace("a.weight.data = b.weight.data.clone()", "a.append(b.weight.data.clone())\n        LINE")


@pytest.mark.parametrize(("row", "made"), [("row.data.clone()", 0), ("row.clone()", 1)])
def test_what_is_only_shown_leaves_its_place_and_the_function_reads_no_data_in_two_ways(row: str, made: int) -> None:
    code = "import torch\n\n\n" + KEPT_ROWS.replace("ROW", row).replace("LINE", "b.weight.data.add_(1)")
    assert fixed(code, "TRAIN10", unsafe=True).count("detach()") == made


def test_how_values_are_set_is_another_matter_than_how_they_are_read() -> None:
    made = fixed("import torch\n\n\n" + ROWS.replace("ROW", "row.data.clone()"), "TRAIN10", unsafe=True)
    assert "for row in head.weight.detach():" in made
    assert "a.weight.data = b.weight.data.clone()" in made


OWN_FORWARD = """\
import torch
from torch import nn


class Loss(nn.Module):
    def forward(self, x):
        return x.mean()


class Model:
    def __init__(self):
        self.loss = Loss()

    def forward(self, x):
        return 2 * x

    def step(self, x):
        return self.loss.forward(self.forward(x))
"""


def test_a_method_of_an_attribute_is_not_like_that_of_the_object() -> None:
    assert "self.loss(self.forward(x))" in fixed(OWN_FORWARD, "TRAIN07", unsafe=True)


METHODS = """\
import torch
from torch import nn


class A(nn.Module):
    def f(self, kept):
        kept.append(self.weight.data)


PLACE    def g(self, x):
        return x.y.data
"""


@pytest.mark.parametrize(("place", "made"), [("", 0), ("class B:\n", 1)])
def test_a_class_keeps_to_one_idiom(place: str, made: int) -> None:
    assert fixed(METHODS.replace("PLACE", place), "TRAIN10", unsafe=True).count("detach()") == made


LOADERS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main(model, optimizer, name):
    train = DataLoader(datasets.CIFAR10("data"), 64, shuffle=True, num_workers=4, pin_memory=True)
    test = DataLoader(datasets.CIFAR10("data", train=False), 64, num_workers=WORKERS, pin_memory=True)
    for epoch in range(90):
        for x, y in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
        INSIDE
    OUTSIDE
"""


@pytest.mark.parametrize(
    ("workers", "inside", "outside", "persistent"),
    [
        ("4", "evaluate(model, test)", "pass", 2),
        ("4", "for x, _ in test:\n            print(model(x.to(device)).sum())", "pass", 2),
        ("4", "pass", "evaluate(model, test)", 0),
        ("4, persistent_workers=True", "pass", "evaluate(model, test)", 2),
        ("4, persistent_workers=False", "evaluate(model, test)", "pass", 1),
    ],
)
def test_workers_of_all_loaders_of_a_function_stay_or_none(
    workers: str, inside: str, outside: str, persistent: int
) -> None:
    code = LOADERS.replace("WORKERS", workers).replace("INSIDE", inside).replace("OUTSIDE", outside)
    assert len(findings(code, "DATA03")) == 1
    assert fixed(code, "DATA03", unsafe=True).count("persistent_workers=True") == persistent


def test_workers_that_a_function_of_the_epochs_starts_stay_with_the_others() -> None:
    code = LOADERS.replace("WORKERS", "4").replace("INSIDE", "check(epoch)").replace("OUTSIDE", "pass")
    body = code.partition("def main(model, optimizer, name):\n")[2].replace("\n    ", "\n").removeprefix("    ")
    head = code.partition("def main(model, optimizer, name):\n")[0] + "model, optimizer = start()\n\n\n"
    check = "def check(epoch):\n    for x, y in test:\n        print(epoch, model(x.to(device)).sum())\n\n\n"
    assert fixed(head + check + body, "DATA03", unsafe=True).count("persistent_workers=True") == 2


def test_a_loader_without_workers_has_none_that_could_stay() -> None:
    code = LOADERS.replace(" num_workers=WORKERS,", "").replace("INSIDE", "pass").replace("OUTSIDE", "evaluate(test)")
    assert fixed(code, "DATA03", unsafe=True).count("persistent_workers=True") == 1


def test_like_places_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    look = alike._look

    def counted(node: cst.CSTNode, kept: str | None, model: Model) -> tuple[str, ...]:
        looked.append(node)
        return look(node, kept, model)

    monkeypatch.setattr(alike, "_look", counted)
    lines = "".join(f"    a{i} = torch.ones({i}, 1).to(x.device)\n" for i in range(100))
    assert len(findings(f"import torch\n\n\ndef f(x):\n{lines}", "XFER01")) == 100
    assert len(looked) <= 400


@pytest.mark.parametrize(("other", "is_changed"), [("", False), (".double()", True)])
def test_what_another_method_has_word_for_word_is_changed_with_it_or_not_at_all(other: str, is_changed: bool) -> None:
    code = f"""\
import torch


class Net:
    def encode(self, x: torch.Tensor):
        return x, torch.randn(x.size()).cuda(x.data.get_device())

    def forward(self, x):
        x, noise = self.decode(x)
        return torch.randn(x.size()).cuda(x.data.get_device()){other}
"""
    assert ("device=x" in fixed(code, "XFER01", unsafe=True)) is is_changed


BATCHES = """\
import torch


def f(images, net, device):
    loader = torch.utils.data.DataLoader(images, batch_size=4, pin_memory=True)
    with torch.no_grad():
        for batch in loader:
            batch = batch.to(device)
            if device == "cuda":
                batch = batch.to({target})
            print(net(batch).cpu())
"""


@pytest.mark.parametrize(("target", "is_left"), [("torch.float16", False), ("device, torch.float16", True)])
def test_a_cast_is_no_copy_that_stays(target: str, is_left: bool) -> None:
    after = fixed(BATCHES.format(target=target), "XFER02", unsafe=True)
    assert ("batch.to(device, non_blocking=True)" in after) is not is_left


REDUCED = """\
import torch


def train(loss, reduced):
    loss.backward()
    total = reduced(loss.data)
    return total


def validate(loss, reduced):
    total = {total}
    {other}
    return total
"""


@pytest.mark.parametrize(
    ("total", "other", "is_left"),
    [
        ("reduced(loss.data)", "again = type(loss.data)", True),
        ("reduced(loss.data)", "", False),
        ("reduced(loss.data) + 1", "again = type(loss.data)", False),
    ],
)
def test_a_statement_that_stays_in_another_function_stays_here(total: str, other: str, is_left: bool) -> None:
    code = REDUCED.format(total=total, other=other).replace("loss.backward()", "loss.sum().backward()")
    after = fixed(code.replace("(loss, reduced)", "(loss: torch.Tensor, reduced)"), "TRAIN10", unsafe=True)
    assert ("reduced(loss.detach())\n    return total\n\n\ndef validate" in after) is not is_left


@pytest.mark.parametrize("other", ["(torch.ones(1, 1) * self.start).to(x.device)", "self.start.to(x.device)"])
def test_what_has_no_fix_and_looks_otherwise_keeps_nothing_back(other: str) -> None:
    code = "import torch\n\n\nclass Search:\n    def __init__(self, start):\n        self.start = start\n\n"
    code += f"    def run(self, x):\n        a = torch.Tensor([0.0]).to(x.device)\n        return a + {other}\n"
    assert [finding.fix is None for finding in findings(code, "XFER01")][1:] in ([True], [])
    assert "torch.zeros(1, device=x.device)" in fixed(code, "XFER01")


@pytest.mark.parametrize(
    ("between", "is_changed"), [(", ", False), ("\n    other = ", True)], ids=["one statement", "two"]
)
def test_random_numbers_that_stay_keep_what_is_made_in_the_same_statement(between: str, is_changed: bool) -> None:
    targets = "mask, other" if between == ", " else "mask"
    code = f"""\
import torch
torch.manual_seed(0)

def batch():
    {targets} = torch.ones(8, 3).cuda(){between}torch.randn(8, 3).cuda()
    return mask, other
"""
    assert (fixed(code, "XFER01", unsafe=True) != code) is is_changed
