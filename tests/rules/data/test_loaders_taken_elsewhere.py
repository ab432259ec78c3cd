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


# -- classes of loaders with a constructor of their own

CLASSES = """\
from torch.utils.data import DataLoader
from samples import Waves


class {name}(DataLoader):
    def __init__(self, {taken}):
        {work}
"""
SCRIPT = """\
import torch
from torch import nn
from {module} import WaveLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(8, 2).to(device)
loader = WaveLoader({given})
for x, y in loader:
    x, y = x.to(device), y.to(device)
    nn.functional.cross_entropy(net(x), y).backward()
"""
HANDED_ON = ("paths, **options", "super().__init__(Waves(paths), **options)")


@pytest.mark.parametrize(
    ("taken", "work", "given", "count"),
    [
        pytest.param(*HANDED_ON, '["a.npy"], batch_size=2, num_workers=2', 1, id="handed on"),
        pytest.param(*HANDED_ON, '["a.npy"], num_workers=2, pin_memory=True', 0, id="pinned"),
        pytest.param(
            "paths, **options",
            "super().__init__(Waves(paths), pin_memory=True, **options)",
            '["a.npy"], num_workers=2',
            0,
            id="pinned by the class",
        ),
        pytest.param(
            "paths, pin_memory=True, **options",
            "super().__init__(Waves(paths), pin_memory=pin_memory, **options)",
            '["a.npy"], num_workers=2',
            0,
            id="pinned by a default",
        ),
        pytest.param(
            "paths, pin_memory=False, **options",
            "options['pin_memory'] = True\n        super().__init__(Waves(paths), **options)",
            '["a.npy"], num_workers=2',
            0,
            id="the options are changed",
        ),
    ],
)
@pytest.mark.parametrize("module", ["waves", "main"])
def test_a_constructor_of_its_own(tmp_path: Path, taken: str, work: str, given: str, count: int, module: str) -> None:
    cls = CLASSES.format(name="WaveLoader", taken=taken, work=work)
    main = SCRIPT.format(module="waves", given=given)
    if module == "main":
        main = cls + main.replace("from waves import WaveLoader\n", "")
    lines = found(tmp_path, "main.py", {"waves.py": cls, "main.py": main})
    assert lines == [f"loader = WaveLoader({given})"] * count


def test_a_constructor_that_hands_nothing_on(tmp_path: Path) -> None:
    cls = CLASSES.format(name="WaveLoader", taken="paths, **options", work="super().__init__(Waves(paths), 2)")
    main = SCRIPT.format(module="waves", given='["a.npy"], num_workers=2')
    assert found(tmp_path, "main.py", {"waves.py": cls, "main.py": main}) == []
    whole = cls + main.replace("from waves import WaveLoader\n", "")
    assert found(tmp_path, "main.py", {"main.py": whole}) == ["super().__init__(Waves(paths), 2)"]


# -- a file that says "DataLoader" only within another name

NAMED = """\
from torch import nn
from trainer import Trainer
from waves import WaveDataLoader

loader = WaveDataLoader(["a.npy"], num_workers=2)
Trainer(nn.Linear(8, 2), loader).fit()
"""
OWN_TRAINER = """\
class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net.cuda(), loader

    def fit(self):
        for x, y in self.loader:
            self.step(x, y)

    def step(self, x, y):
        x = x.{}
        self.net(x).sum().backward()
"""


@pytest.mark.parametrize(("moved", "count"), [("cuda()", 1), ("float()", 0)])
def test_only_the_name_of_a_class_speaks_of_loaders(tmp_path: Path, moved: str, count: int) -> None:
    cls = CLASSES.format(name="WaveDataLoader", taken="paths, **options", work=HANDED_ON[1])
    files = {"waves.py": cls, "trainer.py": OWN_TRAINER.format(moved), "main.py": NAMED}
    assert len(found(tmp_path, "main.py", files)) == count


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


# -- an object that yields what it draws

WRAPPED = """\
from torch.utils.data import DataLoader
from samples import Waves


def create(paths):
    return Batches(paths)


class Batches:
    def __init__(self, paths):
        self.loader = DataLoader(Waves(paths), batch_size=2, num_workers=2)

    def __iter__(self):
        for number, batch in enumerate(self.loader):
            {}
"""
ROUNDS = """\
from data import create
from models import make

batches = create(["a.npy"])
model = make("plain")
for number, batch in enumerate(batches):
    model.take(batch)
    model.step()
"""
PLACEHOLDER = """\
class Base:
    def __init__(self, device):
        self.device = device

    def take(self, batch):
        \"\"\"Keeps a batch.\"\"\"
        {}
"""
MODELS = """\
import importlib
from .base import Base


def make(name):
    return importlib.import_module("models." + name).Model("cuda")
"""
CHOICE = """\
def make(name):
    if name == "plain":
        from .plain import Model as Chosen
    else:
        from .base import Base as Chosen
    return Chosen("cuda")
"""
MODEL = """\
from .base import Base


class Model(Base):
    def take(self, batch):
        self.x = batch["x"].{}
"""


@pytest.mark.parametrize(
    ("yielded", "base", "moved", "count"),
    [
        pytest.param("yield batch", "pass", "to(self.device)", 1, id="copied by all heirs"),
        pytest.param("yield batch", "self.x = {k: v.to(self.device) for k, v in batch.items()}", "", 1, id="copied"),
        pytest.param("yield batch", "pass", "float()", 0, id="copied by none"),
        pytest.param("print(batch)", "pass", "to(self.device)", 0, id="nothing is yielded"),
    ],
)
def test_an_object_yields_what_it_draws(tmp_path: Path, yielded: str, base: str, moved: str, count: int) -> None:
    files = {
        "data.py": WRAPPED.format(yielded),
        "main.py": ROUNDS,
        "models/__init__.py": MODELS,
        "models/base.py": PLACEHOLDER.replace("{}", base),
    }
    if moved:
        files["models/plain.py"] = MODEL.format(moved)
    assert len(found(tmp_path, "data.py", files)) == count


def test_an_object_is_given_to_a_class_that_a_function_imports(tmp_path: Path) -> None:
    files = {
        "data.py": WRAPPED.format("yield batch"),
        "main.py": ROUNDS,
        "models/__init__.py": CHOICE,
        "models/base.py": PLACEHOLDER.replace("{}", "pass"),
        "models/plain.py": MODEL.format("to(self.device)"),
        "other.py": "class Table:\n    def take(self, batch):\n        return batch\n",
    }
    assert len(found(tmp_path, "data.py", files)) == 1


# -- a class of loaders for others

BASE = """\
from torch.utils.data import DataLoader


class BaseLoader(DataLoader):
    def __init__(self, dataset, batch_size, {taken}num_workers):
        self.options = {{"dataset": dataset, "batch_size": batch_size, "num_workers": num_workers}}
        super().__init__({given}**self.options)
"""
HEIR = """\
from base import BaseLoader
from samples import Waves


class WaveLoader(BaseLoader):
    def __init__(self, paths):
        super().__init__(Waves(paths), 2, 2)
"""
BY_NAME = """\
import loaders
from trainer import Trainer

Trainer(getattr(loaders, "WaveLoader")(["a.npy"]), "cuda").fit()
"""
FITTING = """\
class Trainer:
    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def fit(self):
        for x, y in self.loader:
            x = x.{}
"""


@pytest.mark.parametrize(
    ("taken", "given", "moved", "count"),
    [
        pytest.param("", "", "to(self.device)", 1, id="copied"),
        pytest.param("", "pin_memory=True, ", "to(self.device)", 0, id="pinned"),
        pytest.param("pin_memory, ", "pin_memory=pin_memory, ", "to(self.device)", 0, id="others say"),
        pytest.param("", "", "float()", 0, id="stays on the host"),
    ],
)
def test_a_class_whose_objects_others_make(tmp_path: Path, taken: str, given: str, moved: str, count: int) -> None:
    base = BASE.format(taken=taken, given=given)
    files = {"base.py": base, "loaders.py": HEIR, "trainer.py": FITTING.format(moved), "main.py": BY_NAME}
    assert found(tmp_path, "base.py", files) == [f"super().__init__({given}**self.options)"] * count
