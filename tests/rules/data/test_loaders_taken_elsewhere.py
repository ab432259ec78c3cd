"""DATA02: loaders that other files take by their name, from a dict or through a package, and copy with helpers."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

SAMPLES = """\
import numpy as np
from torch.utils.data import Dataset


class Waves(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, index):
        return np.load(self.paths[index])

    def __len__(self):
        return len(self.paths)
"""


def found(folder: Path, linted: str, files: dict[str, str], code: str = "DATA02") -> list[str]:
    """The lines of a file that are found."""
    (folder / "pyproject.toml").touch()
    for name, text in {"samples.py": SAMPLES, **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(dedent(text))
    source = Source.read(folder / linted)
    findings = lint(source, Settings.selecting(code), strict=True, project=Project())
    return [source.text.splitlines()[finding.line - 1].strip() for finding in findings]


# -- at the top level of a file

TOP = """\
from torch.utils.data import DataLoader
from samples import Waves

train_set = Waves(["a.npy", "b.npy"])
train_loader = DataLoader(train_set, batch_size=2, num_workers=2)
spare_loader = DataLoader(train_set, batch_size=4, num_workers=2)
"""
DRAWN = """\
import torch
from torch import nn
{}

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in {}:
    {}
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
"""
COPIED = "x, y = x.to(device), y.to(device)"
TRAIN = "train_loader = DataLoader(train_set, batch_size=2, num_workers=2)"


@pytest.mark.parametrize(
    ("imported", "drawn"),
    [
        ("from loaders import *", "train_loader"),
        ("from loaders import train_loader", "train_loader"),
        ("from loaders import train_loader as batches", "batches"),
        ("import loaders", "loaders.train_loader"),
    ],
)
def test_taken_by_its_name(tmp_path: Path, imported: str, drawn: str) -> None:
    files = {"loaders.py": TOP, "main.py": DRAWN.format(imported, drawn, COPIED)}
    assert found(tmp_path, "loaders.py", files) == [TRAIN]


def test_taken_together_with_another(tmp_path: Path) -> None:
    main = DRAWN.format("from loaders import *\nfrom tqdm import tqdm", "tqdm(zip(train_loader, labels))", COPIED)
    assert found(tmp_path, "loaders.py", {"loaders.py": TOP, "main.py": main}) == [TRAIN]


@pytest.mark.parametrize(
    ("imported", "drawn", "moved"),
    [
        pytest.param("from loaders import *", "train_loader", "x = x.float()", id="stays on the host"),
        pytest.param("from loaders import train_set", "train_set", COPIED, id="the dataset is taken"),
        pytest.param("from elsewhere import train_loader", "train_loader", COPIED, id="of another file"),
        pytest.param(
            "from loaders import *\ntrain_loader = [torch.randn(2, 8)]",
            "train_loader",
            COPIED,
            id="the name is another's",
        ),
    ],
)
def test_not_taken_or_not_copied(tmp_path: Path, imported: str, drawn: str, moved: str) -> None:
    files = {"loaders.py": TOP, "main.py": DRAWN.format(imported, drawn, moved)}
    assert found(tmp_path, "loaders.py", files) == []


def test_moved_by_the_file_that_has_it(tmp_path: Path) -> None:
    main = DRAWN.format("import loaders", "loaders.train_loader", COPIED)
    listed = TOP + "train_loader = [(x, y) for x, y in train_loader]\n"
    assert found(tmp_path, "loaders.py", {"loaders.py": listed, "main.py": main}) == []


# -- in a dict or a list

RETURNED = """\
from torch.utils.data import DataLoader
from samples import Waves


def build(parts):
    {}
"""
MADE = "DataLoader(Waves(paths), batch_size=2, num_workers=2)"
TRAINER = """\
class Trainer:
    def __init__(self, net, loaders, device):
        self.net = net
        self.loader = loaders["train"]
        self.device = device

    def fit(self):
        for x, y in self.loader:
            {}
            self.net(x).sum().backward()
"""
MAIN = """\
import torch
from torch import nn
from build import build
from trainer import Trainer

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(8, 2).to(device)
Trainer(net, build({"train": ["a.npy"]}), device).fit()
"""


@pytest.mark.parametrize(
    "made",
    [
        f"loaders = {{}}\n    for part, paths in parts.items():\n        loaders[part] = {MADE}\n    return loaders",
        f"return {{part: {MADE} for part, paths in parts.items()}}",
        f"return [{MADE} for paths in parts]",
        f"loaders = []\n    for paths in parts:\n        loaders.append({MADE})\n    return loaders",
    ],
)
@pytest.mark.parametrize(("moved", "count"), [("x = x.to(self.device)", 1), ("x = x.float()", 0)])
def test_returned_in_a_container(tmp_path: Path, made: str, moved: str, count: int) -> None:
    files = {"build.py": RETURNED.format(made), "trainer.py": TRAINER.format(moved), "main.py": MAIN}
    assert len(found(tmp_path, "build.py", files)) == count


# -- batches that a helper copies

HELPED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from samples import Waves
from tools import {name}

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net, loader

    def fit(self):
        for batch in self.loader:
            batch = {name}(batch{rest})
            self.net(batch["x"]).sum().backward()
"""
BUILT = """\
from torch.utils.data import DataLoader
from samples import Waves


def build(paths):
    loader = DataLoader(Waves(paths), batch_size=2, num_workers=2)
    return loader
"""
USED = """\
from torch import nn
from build import build
from trainer import Trainer

Trainer(nn.Linear(8, 2).cuda(), build(["a.npy"])).fit()
"""
COPIES = {
    "a comprehension": "return {k: v.to(device) for k, v in batch.items()}",
    "a list": "return [part.to(device) for part in batch]",
    "one entry after the other": "for key in batch:\n        batch[key] = batch[key].to(device)\n    return batch",
    "recursively": (
        "if isinstance(batch, list):\n        return [send(b, device) for b in batch]\n    return batch.to(device)"
    ),
}
LEAVES = {
    "names another thing": "device.type\n    return {k: v.float() for k, v in batch.items()}",
    "copies something else": "weights = torch.ones(3)\n    weights = weights.to(device)\n    return batch",
    "copies to the host": "return {k: v.to('cpu') for k, v in batch.items()}",
}


@pytest.mark.parametrize(
    ("body", "count"),
    [
        *(pytest.param(body, 1, id=name) for name, body in COPIES.items()),
        *(pytest.param(body, 0, id=name) for name, body in LEAVES.items()),
    ],
)
def test_a_helper_copies_whole_batches(tmp_path: Path, body: str, count: int) -> None:
    trainer = HELPED.format(name="send", rest=", device")
    tools = f"import torch\n\n\ndef send(batch, device):\n    {body}\n"
    files = {"build.py": BUILT, "trainer.py": trainer, "main.py": USED, "tools.py": tools}
    assert len(found(tmp_path, "build.py", files)) == count


def test_helpers_of_the_same_name(tmp_path: Path) -> None:
    """Which one is meant nobody says."""
    trainer = HELPED.format(name="send", rest=", device")
    copying = "def send(batch, device):\n    return [part.to(device) for part in batch]\n"
    keeping = "def send(batch, device):\n    return batch\n"
    files = {"build.py": BUILT, "trainer.py": trainer + "\n\n" + keeping, "main.py": USED, "tools.py": copying}
    assert found(tmp_path, "build.py", files) == []


# -- through a package

PACKED = """\
from torch import nn
from data import *


def fit(net, loader):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        nn.functional.cross_entropy(net(x), y).backward()


fit(nn.Linear(8, 2).cuda(), {})
"""


@pytest.mark.parametrize(
    ("handed_on", "used", "count"),
    [
        ("from .build import build", "build(['a.npy'])", 1),
        ("from .build import *", "build(['a.npy'])", 1),
        ("", "[]", 0),
    ],
)
def test_a_package_hands_its_maker_on(tmp_path: Path, handed_on: str, used: str, count: int) -> None:
    files = {"data/__init__.py": handed_on, "data/build.py": BUILT, "main.py": PACKED.format(used)}
    assert len(found(tmp_path, "data/build.py", files)) == count


# -- many programs side by side, whose files have the same names

BESIDE = """\
from data_loader import build
from trainer import Trainer

Trainer(build(["a.npy"])).fit()
"""
COUNT = 9


@pytest.mark.parametrize(
    ("moved", "count"), [("x = x.cuda()", 1), ("x = x.float()", 0)], ids=["is copied", "stays on the host"]
)
def test_many_programs_have_files_of_the_same_names(tmp_path: Path, moved: str, count: int) -> None:
    """What the trainer beside the loader does counts, and not what those of the other programs do."""
    kept = "class Trainer:\n    def __init__(self, loader):\n        self.loader = loader\n\n    def fit(self):\n"
    drawn = "        for x, y in self.loader:\n            {}\n"
    files = {}
    for number in range(COUNT):
        own = moved if number == 4 else ("x = x.cuda()" if count == 0 else "x = x.float()")
        files |= {
            f"net{number}/data_loader.py": BUILT,
            f"net{number}/main.py": BESIDE,
            f"net{number}/trainer.py": kept + drawn.format(own),
        }
    assert len(found(tmp_path, "net4/data_loader.py", files)) == count


# -- batches that a helper is given as they are drawn

ITERATED = """\
class Trainer:
    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def fit(self, net):
        batches = iter(self.loader)
        while True:
            x = {}
            net(x).sum().backward()

    def send(self, x):
        return x.{}
"""
STARTED = """\
from torch import nn
from build import build
from trainer import Trainer

Trainer(build(["a.npy"]), "cuda").fit(nn.Linear(8, 2).cuda())
"""


@pytest.mark.parametrize("drawn", ["self.send(next(batches))", "self.send(batches.next())"])
@pytest.mark.parametrize(("moved", "count"), [("to(self.device)", 1), ("float()", 0)])
def test_a_helper_gets_what_is_drawn(tmp_path: Path, drawn: str, moved: str, count: int) -> None:
    files = {"build.py": BUILT, "trainer.py": ITERATED.format(drawn, moved), "main.py": STARTED}
    assert len(found(tmp_path, "build.py", files)) == count


def test_batches_of_an_iterator_that_is_asked_by_its_method(tmp_path: Path) -> None:
    trainer = ITERATED.format("batches.next()\n            x = x.cuda()", "float()")
    files = {"build.py": BUILT, "trainer.py": trainer, "main.py": STARTED}
    assert len(found(tmp_path, "build.py", files)) == 1
