"""DATA01, DATA02, XFER02: what other files say of a loader, of its samples, and of what becomes of its batches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

HEADER = """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
"""
LOOP = """\
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
    loss.backward()
"""


def found(folder: Path, **files: str) -> list[tuple[str, int]]:
    """Codes and lines of the findings in `main.py`."""
    (folder / "pyproject.toml").touch()
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code)
    settings = Settings.selecting("DATA01", "DATA02", "XFER02")
    findings = lint(Source.read(folder / "main.py"), settings, strict=True, project=Project())
    return [(finding.code, finding.line) for finding in findings]


# -- names that come through other files, or stand for something else later


def test_a_loader_class_that_another_file_imports(tmp_path: Path) -> None:
    main = HEADER + "from samples import DataLoader, Words\nloader = DataLoader(Words(), 4, num_workers=2)\n" + LOOP
    samples = "from torch.utils.data import DataLoader, Dataset\n\nclass Words(Dataset):\n    pass\n"
    assert found(tmp_path, main=main, samples=samples) == [("DATA02", 7), ("XFER02", 9), ("XFER02", 9)]
    own = "class DataLoader:\n    def __iter__(self):\n        return iter([])\n\nclass Words:\n    pass\n"
    assert found(tmp_path, main=main, samples=own) == []


RENAMED = """\
from torch.utils import data
from samples import Words

def main():
    {}

if __name__ == "__main__":
    loader = data.DataLoader(Words(), 4, num_workers=2)
    for epoch in range(3):
        for data in loader:
            x, y = data
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
"""


def test_a_module_whose_name_a_batch_takes_later(tmp_path: Path) -> None:
    samples = "class Words:\n    pass\n"
    main = HEADER + RENAMED.format("pass")
    assert found(tmp_path, main=main, samples=samples) == [("DATA02", 13), ("XFER02", 17), ("XFER02", 17)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("    loader = data", "    data = renamed()\n    loader = data", id="taken before"),
        pytest.param(
            "    loader = data", "    if fast:\n        import data\n    loader = data", id="in a branch before"
        ),
        pytest.param("    loader = data", "    while True:\n      loader = data", id="a loop leads back"),
    ],
)
def test_a_module_whose_name_may_be_another_thing_already(tmp_path: Path, before: str, after: str) -> None:
    main = HEADER + RENAMED.format("pass").replace(before, after)
    if "while" in after:
        main = main.replace("    for epoch", "      data = renamed()\n    for epoch")
    assert found(tmp_path, main=main, samples="class Words:\n    pass\n") == []


# -- the samples of another file

READ = """\
import numpy as np
from torch.utils.data import Dataset

class Dataset(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, i):
        return {}

    def __len__(self):
        return len(self.paths)
"""


@pytest.mark.parametrize(
    ("sample", "codes"),
    [
        pytest.param("np.load(self.paths[i])", ["DATA01", "DATA02"], id="read from files"),
        pytest.param("self.paths[i]", ["DATA02"], id="in memory"),
    ],
)
def test_a_class_that_takes_the_name_of_its_base(tmp_path: Path, sample: str, codes: list[str]) -> None:
    main = HEADER + "from torch.utils.data import DataLoader\nfrom samples import Dataset\n"
    main += "loader = DataLoader(Dataset('data'), 4)\n" + LOOP
    settled = [code for code, line in found(tmp_path, main=main, samples=READ.format(sample)) if line == 8]
    assert settled == codes


SETTINGS = 'workers = {"train": 0}\n'


@pytest.mark.parametrize(
    ("count", "codes"),
    [
        pytest.param('settings.workers["train"]', ["DATA02"], id="a setting of another file"),
        pytest.param("0", ["DATA01", "DATA02"], id="a number"),
        pytest.param("WORKERS", ["DATA01", "DATA02"], id="a number of this file"),
    ],
)
def test_the_number_of_workers_is_a_setting_of_another_file(tmp_path: Path, count: str, codes: list[str]) -> None:
    main = (
        HEADER + "import settings\nfrom torch.utils.data import DataLoader\nfrom samples import Dataset\nWORKERS = 0\n"
    )
    main += f"loader = DataLoader(Dataset('data'), 4, num_workers={count})\n" + LOOP
    files = found(tmp_path, main=main, samples=READ.format("np.load(self.paths[i])"), settings=SETTINGS)
    assert [code for code, line in files if line == 10] == codes


# -- batches that other files copy

MOVED = """\
from torch.utils.data import DataLoader
from samples import Dataset
from tools import to_device

loader = DataLoader(Dataset("data"), 4)
for batch in loader:
    x, y = to_device(batch, device)
    nn.functional.cross_entropy(model(x), y).backward()
"""
TOOLS = """\
import torch

def to_device(batch, device):
    x, y = batch
    x = {}.to(device)
    y = {}.to(device)
    return x, y
"""


@pytest.mark.parametrize(
    ("x", "y", "codes"),
    [
        pytest.param("torch.from_numpy(x).float()", "torch.from_numpy(y)", ["DATA01"], id="arrays"),
        pytest.param("torch.from_numpy(x).float()", "y", ["DATA01", "DATA02"], id="arrays and tensors"),
        pytest.param("x", "y.long()", ["DATA01", "DATA02"], id="tensors"),
    ],
)
def test_pinning_changes_nothing_for_batches_of_arrays(tmp_path: Path, x: str, y: str, codes: list[str]) -> None:
    samples = READ.format("np.load(self.paths[i])")
    result = found(tmp_path, main=HEADER + MOVED, samples=samples, tools=TOOLS.format(x, y))
    assert [code for code, _ in result] == codes


KEPT = """\
from torch.utils.data import DataLoader, Dataset

class Batches:
    def __init__(self, dataset):
        self.train = DataLoader(dataset, 4, num_workers=2)

    def training(self):
        return {}
"""
TRAINER = """\
import torch
from main import Batches
from samples import Dataset

device = torch.device("cuda")
train_loader = Batches(Dataset("data")).training()
for x, y in train_loader:
    step(x.{}, y)
"""


@pytest.mark.parametrize(
    ("returned", "copied", "lines"),
    [
        pytest.param("self.train", "to(device)", [5], id="copied by another file"),
        pytest.param("self.train, len(self.train)", "cuda()", [5], id="beside something else"),
        pytest.param("self.train", "float()", [], id="not copied"),
        pytest.param("len(self.train)", "to(device)", [], id="not handed out"),
    ],
)
def test_a_loader_that_a_method_hands_out(tmp_path: Path, returned: str, copied: str, lines: list[int]) -> None:
    files = {"main": KEPT.format(returned), "samples": READ.format("self.paths[i]"), "train": TRAINER.format(copied)}
    assert [line for code, line in found(tmp_path, **files) if code == "DATA02"] == lines


# -- how often a batch is drawn

FIRST = """\
from torch.utils.data import DataLoader
from samples import Dataset

loader = DataLoader(Dataset("data"), 4, num_workers=2)
batches = iter(loader)
"""


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        pytest.param(
            "samples = [tuple(d.to(device) for d in next(batches)) for _ in range(2)]\n", [], id="two batches"
        ),
        pytest.param("samples = [x.to(device) for x, y in loader]\n", ["DATA02", "XFER02"], id="all batches"),
    ],
)
def test_a_comprehension_over_the_parts_of_a_batch_draws_none(tmp_path: Path, line: str, codes: list[str]) -> None:
    result = found(tmp_path, main=HEADER + FIRST + line, samples=READ.format("self.paths[i]"))
    assert [code for code, _ in result] == codes


# -- workers of a loader that a program without a guard builds

LOADERS = """\
import torch
from torch import nn
from torchvision import datasets, transforms

def get_loaders(size):
    train = datasets.CIFAR10("data", transform=transforms.ToTensor())
    test = datasets.CIFAR10("data", train=False, transform=transforms.ToTensor())
    first = torch.utils.data.DataLoader(train, batch_size=size, shuffle=True)
    second = torch.utils.data.DataLoader(test, batch_size=size)
    return first, second

def run(model, device, size):
    for loader in get_loaders(size):
        for x, y in loader:
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
"""
CALLER = "from main import get_loaders\n\n{}train, test = get_loaders(32)\n"


@pytest.mark.parametrize(
    ("head", "applicability"),
    [("", Applicability.DISPLAY), ('if __name__ == "__main__":\n    ', Applicability.UNSAFE)],
    ids=["no guard", "a guard"],
)
def test_workers_are_only_shown_where_importing_another_file_builds_the_loader(
    tmp_path: Path, head: str, applicability: Applicability
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text(LOADERS)
    (tmp_path / "train.py").write_text(CALLER.format(head))
    found = lint(Source.read(tmp_path / "main.py"), Settings.selecting("DATA01"), project=Project())
    assert [finding.fix and finding.fix.applicability for finding in found] == [applicability] * 2


def test_loaders_side_by_side_get_their_options_in_one_order() -> None:
    after = fixed(LOADERS, "DATA01", "DATA02")
    assert after.count("import os\n") == 1
    assert re.findall("num_workers|pin_memory", after) == ["num_workers", "pin_memory"] * 2


FITTED = """\
class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model{move}, loader

    def fit(self, optimizer):
        for x, y in self.loader:
            loss = (self.model(x{move}) - y{move}).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(("move", "codes"), [(".cuda()", ["DATA01", "DATA02"]), ("", [])])
def test_a_script_names_no_device_and_its_trainer_does(tmp_path: Path, move: str, codes: list[str]) -> None:
    main = """\
import torch
from samples import Dataset
from fitting import Trainer

model = torch.nn.Linear(8, 2)
loader = torch.utils.data.DataLoader(Dataset("photos"), 32, shuffle=True)
trainer = Trainer(model, loader)
trainer.fit(torch.optim.SGD(model.parameters(), 0.1))
"""
    samples = READ.format("np.load(self.paths[i])")
    reported = found(tmp_path, main=main, samples=samples, fitting=FITTED.format(move=move))
    assert [code for code, _ in reported] == codes


BUILT = """\
import torch
from torch.utils.data import DataLoader
from samples import Words

def get_loaders():
    first = DataLoader(Words(), 4, num_workers=2)
    rest = DataLoader(Words(), 8, num_workers=2)
    return first, rest
"""
GETTING = """\
import torch
from main import get_loaders

device = torch.device("cuda")
model = torch.nn.Linear(8, 2).to(device)
train_loader, eval_loader = get_loaders()
for x, y in train_loader:
    loss = (model(x.to(device)) - y.to(device)).sum()
    loss.backward()
{more}
"""


@pytest.mark.parametrize(
    ("more", "lines"), [("", [6]), ("print(len(eval_loader))", [6, 7]), ("pair = get_loaders()", [6, 7])]
)
def test_a_loader_that_gets_a_name_and_is_never_looked_at(more: str, lines: list[int], tmp_path: Path) -> None:
    samples = "from torch.utils.data import Dataset\n\nclass Words(Dataset):\n    pass\n"
    every = found(tmp_path, main=BUILT, train=GETTING.format(more=more), samples=samples)
    assert [line for code, line in every if code == "DATA02"] == lines


SETS = """\
from PIL import Image
from torch.utils.data import Dataset

class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, i):
        return {sample}

    @classmethod
    def splits(cls, folder):
        return cls([folder + "/a"]), cls([folder + "/b"])

def training_set(folder):
    return Photos([folder])
"""


@pytest.mark.parametrize(("sample", "count"), [("Image.open(self.paths[i])", 1), ("self.paths[i]", 0)])
@pytest.mark.parametrize("made", ["photos = training_set('a')", "photos, rest = Photos.splits('a')"])
def test_samples_of_a_dataset_that_another_file_makes(tmp_path: Path, made: str, sample: str, count: int) -> None:
    loader = "from torch.utils.data import DataLoader\nfrom sets import Photos, training_set\n"
    main = HEADER + loader + f"{made}\nloader = DataLoader(photos, 4, pin_memory=True)\n" + LOOP
    codes = [code for code, _ in found(tmp_path, main=main, sets=SETS.format(sample=sample))]
    assert codes.count("DATA01") == count


BOTH_WAYS = """\
import torch
from torch.utils.data import DataLoader
from samples import Words

def get_loaders():
    first = DataLoader(Words(), 4, num_workers=2, pin_memory=True)
    rest = DataLoader(Words(), 8, num_workers=2)
    return first, rest

def evaluate(net, loader):
    total = 0
    for x, y in loader:
        total += (net(x.cuda()).argmax(1) == y.cuda()).sum()
    return total
"""
HANDING = """\
import torch
from main import evaluate, get_loaders

net = torch.nn.Linear(8, 2).cuda()
{got}
print(evaluate({given}))
"""


@pytest.mark.parametrize(
    ("got", "given", "reported"),
    [
        ("first, rest = get_loaders()", "net, first", [("XFER02", 13)] * 2),
        ("first, rest = get_loaders()", "net=net, loader=first", [("XFER02", 13)] * 2),
        ("first, rest = get_loaders()", "net, rest", [("DATA02", 7), ("XFER02", 13), ("XFER02", 13)]),
        ("first, rest = get_loaders()\nfirst = cached(first)", "net, first", []),
        ("first, rest = other.get_loaders()", "net, first", []),
        ("first, *rest = get_loaders()", "net, first", [("DATA02", 7), ("XFER02", 13), ("XFER02", 13)]),
        ("first, *rest = get_loaders()", "net, rest", [("DATA02", 7)]),
        ("*first, rest = get_loaders()", "net, rest", [("DATA02", 7)]),
    ],
)
def test_what_a_file_gets_from_a_function_and_gives_to_another_of_the_same_file(
    got: str, given: str, reported: list[tuple[str, int]], tmp_path: Path
) -> None:
    samples = "from torch.utils.data import Dataset\n\nclass Words(Dataset):\n    pass\n"
    every = found(tmp_path, main=BOTH_WAYS, run=HANDING.format(got=got, given=given), samples=samples)
    assert [each for each in every if each[0] != "DATA02" or each[1] == 7] == reported


CHOSEN = """\
from torchvision import datasets
from torch.utils.data import TensorDataset

def digits(kind, rows):
    if kind == "mnist":
        train = datasets.MNIST("data", train=True)
        test = datasets.MNIST("data", train=False)
    else:
        train = datasets.KMNIST("data", train=True)
        test = datasets.KMNIST("data", train=False)
    return train, test, {rest}
"""
GIVEN = """\
def run(images):
    loader = torch.utils.data.DataLoader(images, 4, pin_memory=True)
    for x, y in loader:
        nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()

run({given})
"""


@pytest.mark.parametrize(
    ("rest", "given", "count"),
    [
        ("{0: rows}", "train", 1),
        ("{0: rows}", "torch.utils.data.Subset(train, [0, 1])", 1),
        ("{0: rows}", "unknown(train)", 0),
        ("TensorDataset(rows, rows)", "train", 0),
    ],
)
def test_samples_of_datasets_that_another_file_chooses_from(tmp_path: Path, rest: str, given: str, count: int) -> None:
    main = HEADER + "from sets import digits\ntrain, test, rest = digits('mnist', [])\n" + GIVEN.format(given=given)
    codes = [code for code, _ in found(tmp_path, main=main, sets=CHOSEN.format(rest=rest))]
    assert codes.count("DATA01") == count


ONE_OR_ANOTHER = """\
import torch
from torch.utils.data import DataLoader
from samples import Words

def get_loaders():
    first = DataLoader(Words(), 4, num_workers=2)
    return first, 2

def evaluate(net, pairs):
    total = 0
    for x, y in pairs:
        total += (net(x.cuda()).argmax(1) == y.cuda()).sum()
    return total
"""
EVALUATED = """\
from main import evaluate, get_loaders
from nets import net, pairs

first_loader, count = get_loaders()
for x, y in first_loader:
    net({x}).sum().backward()
print(evaluate(net, first_loader), evaluate(net, {other}))
"""


@pytest.mark.parametrize(
    ("x", "other", "lines"), [("x.cuda()", "pairs", [6]), ("x", "pairs", []), ("x", "first_loader", [6])]
)
def test_a_loop_that_others_give_the_loader_or_something_else(
    tmp_path: Path, x: str, other: str, lines: list[int]
) -> None:
    samples = "from torch.utils.data import Dataset\n\nclass Words(Dataset):\n    pass\n"
    every = found(tmp_path, main=ONE_OR_ANOTHER, run=EVALUATED.format(x=x, other=other), samples=samples)
    assert [line for code, line in every if code == "DATA02"] == lines
