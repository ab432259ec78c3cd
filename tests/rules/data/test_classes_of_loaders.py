"""DATA02: classes of loaders, and of objects that keep one and yield what they draw, made and used in other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rules.data.test_loaders_taken_elsewhere import found
from tests.support import fixed

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


# -- the fix

OF_ITS_OWN_CLASS = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return torch.tensor([i, i * i]) * torch.ones(2)


class SquareLoader(DataLoader):
    def __init__(self, count, **options):
        super().__init__(Squares(count), **options)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = SquareLoader(10, batch_size=3, shuffle=True, num_workers=1)
seen = [x.to(device) for _ in range(2) for x in loader]
for x in loader:
    seen.append(x.to(device))
"""


def test_a_class_that_hands_its_options_on_is_told_to_pin() -> None:
    changed = fixed(OF_ITS_OWN_CLASS, "DATA02", unsafe=False)
    assert "num_workers=1, pin_memory=torch.cuda.is_available())" in changed.replace("\n", " ").replace("  ", "")
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(compile(OF_ITS_OWN_CLASS, "before", "exec"), before)
    exec(compile(changed, "after", "exec"), after)
    assert len(before["seen"]) == len(after["seen"]) == 12
    assert all(a.equal(b) for a, b in zip(before["seen"], after["seen"], strict=True))
