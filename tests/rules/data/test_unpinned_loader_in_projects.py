"""DATA02: a loader in one file, its batches, samples or options in another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.data.unpinned_loaders import HEADER, LOOP
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

SAMPLES = """\
import torch
from torch.utils.data import Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Signals(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((8,), float(index){}, index % 2


def signals():
    return [(torch.randn(8{}, 0) for _ in range(8)]
"""


@pytest.mark.parametrize("dataset", ["Signals()", "signals()"])
@pytest.mark.parametrize("place", [").to(device)", ", device=device)", ")"])
def test_a_dataset_of_another_file_may_compute_on_the_gpu(tmp_path: Path, dataset: str, place: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "samples.py").write_text(SAMPLES.format(place, place))
    main = HEADER + f"from samples import Signals, signals\nloader = DataLoader({dataset}, 4)\n" + LOOP
    (tmp_path / "main.py").write_text(main)
    source = Source.read(tmp_path / "main.py")
    for codes in ("DATA02", "XFER02"):
        found = lint(source, Settings.selecting(codes), strict=True, project=Project())
        assert bool(found) == (place == ")")


MOVED = """\
import torch
from torch.utils.data import Dataset


class Recordings(Dataset):
    def __init__(self, files, device="cuda"):
        self.device = device
        self.waves = [torch.load(file) for file in files]

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, index):
        wave = {{}}
        wave["audio"] = self.waves[index]{}
        return wave


class Speech(Recordings):
    def __init__(self, files, device="cuda"):
        super().__init__(files, device)
"""


@pytest.mark.parametrize(("place", "count"), [("", 1), (".to(self.device)", 0)])
def test_the_base_of_a_dataset_of_another_file_may_move_its_samples(tmp_path: Path, place: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "recordings.py").write_text(MOVED.format(place))
    main = HEADER + "from recordings import Speech\nloader = DataLoader(Speech(files), 4)\n" + LOOP
    (tmp_path / "main.py").write_text(main)
    source = Source.read(tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("DATA02"), strict=True, project=Project())) == count


LOADERS = """\
from torch.utils.data import DataLoader
from torchvision import datasets


def get_loader(root, batch_size):
    images = datasets.ImageFolder(root)
    loader = DataLoader(images, batch_size, shuffle=True, num_workers=4)
    return loader
"""
SCRIPT = """\
import torch
from loaders import get_loader
from solver import Solver

Solver(get_loader("data", 16), torch.device("cuda")).train()
"""
SOLVER = """\
class Solver:
    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def train(self):
        {drawn}
            step(x.{copied}, y)
"""


def in_project(folder: Path, loaders: str, script: str, solver: str) -> list[int]:
    (folder / "pyproject.toml").touch()
    for name, code in (("loaders", loaders), ("main", script), ("solver", solver)):
        (folder / f"{name}.py").write_text(code)
    found = lint(Source.read(folder / "loaders.py"), Settings.selecting("DATA02"), strict=True, project=Project())
    return [finding.line for finding in found]


@pytest.mark.parametrize(
    ("drawn", "copied", "lines"),
    [
        ("for x, y in self.loader:", "to(self.device)", [7]),
        ("for i, (x, y) in enumerate(self.loader):", "cuda()", [7]),
        ("for x, y in self.loader:", "to(float)", []),
        ("for x, y in self.loader:", "flatten()", []),
        ("for layer in self.layers:", "cuda()", []),
    ],
)
def test_a_loader_whose_batches_another_file_copies(tmp_path: Path, drawn: str, copied: str, lines: list[int]) -> None:
    assert in_project(tmp_path, LOADERS, SCRIPT, SOLVER.format(drawn=drawn, copied=copied)) == lines


def test_a_loader_that_other_files_draw_by_hand(tmp_path: Path) -> None:
    solver = SOLVER.format(drawn="while True:\n            x, y = next(batches)", copied="to(self.device)")
    assert in_project(tmp_path, LOADERS, SCRIPT, solver) == [7]


def test_a_loader_that_stays_in_its_file_is_not_that_of_others(tmp_path: Path) -> None:
    solver = SOLVER.format(drawn="for x, y in self.loader:", copied="to(self.device)")
    own = LOADERS.replace("return loader", "for x, y in loader:\n        print(x.shape)\n    return loader")
    assert in_project(tmp_path, own, SCRIPT, solver) == []
    assert in_project(tmp_path, LOADERS.replace("return loader", "return len(loader)"), SCRIPT, solver) == []
    assert in_project(tmp_path, LOADERS, "import solver\n", solver) == []
    assert in_project(tmp_path, LOADERS, "import loaders\nimport solver\n", solver) == []


@pytest.mark.parametrize(
    ("trainer", "found"),
    [
        ('accelerator="gpu" if torch.cuda.is_available() else "cpu"', 1),
        ('accelerator="cpu"', 0),
        ("max_epochs=3", 0),
    ],
)
def test_a_loader_that_an_object_brings_to_a_trainer(trainer: str, found: int) -> None:
    code = f"""
        import lightning as L
        import torch
        from systems import System
        from torch.utils.data import DataLoader
        from torchvision import datasets

        class Separator(System):
            def common_step(self, batch):
                return self.loss(batch)

        loader = DataLoader(datasets.CIFAR10("data"), 64, num_workers=4)
        L.Trainer({trainer}).fit(Separator(model=torch.nn.Linear(8, 2), train_loader=loader))
    """
    assert len(findings(code, "DATA02")) == found


def test_a_batch_that_other_files_take_apart_below_the_loop(tmp_path: Path) -> None:
    drawn = "for batch in self.loader:\n            x, y = {source}"
    assert in_project(
        tmp_path, LOADERS, SCRIPT, SOLVER.format(drawn=drawn.format(source="batch"), copied="cuda()")
    ) == [7]
    assert (
        in_project(tmp_path, LOADERS, SCRIPT, SOLVER.format(drawn=drawn.format(source="pair"), copied="cuda()")) == []
    )


@pytest.mark.parametrize(
    "copied",
    [
        "x, y = [part.cuda() for part in batch]",
        "batch = tuple(part.to(self.device) for part in batch)",
        "for part in batch:\n                parts.append(part.to(dist_util.dev()))",
        "for name, part in batch.items():\n                batch[name] = part.to(self.device)",
    ],
)
def test_a_batch_that_other_files_copy_part_by_part(tmp_path: Path, copied: str) -> None:
    solver = "class Solver:\n    def train(self):\n        for batch in self.loader:\n            " + copied + "\n"
    assert in_project(tmp_path, LOADERS, SCRIPT, solver) == [7]
    assert in_project(tmp_path, LOADERS, SCRIPT, solver.replace("in batch", "in layers")) == []


def test_a_loader_that_many_files_import(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"gan{number}.py").write_text("from loaders import get_loader\n")
    user = "from loaders import get_loader\nfor x, y in get_loader('data', 8):\n    x = x.{}()\n"
    assert in_project(tmp_path, LOADERS, user.format("cuda"), "") == [7]
    assert in_project(tmp_path, LOADERS, user.format("float"), "") == []


def test_a_generator_that_yields_the_batches_of_its_loader(tmp_path: Path) -> None:
    endless = LOADERS.replace("return loader", "while True:\n        yield from loader")
    solver = SOLVER.format(drawn="while True:\n            x, y = next(self.loader)", copied="to(self.device)")
    assert in_project(tmp_path, endless, SCRIPT, solver) == [7]
    assert in_project(tmp_path, endless.replace("from loader", "from range(3)"), SCRIPT, solver) == []


@pytest.mark.parametrize(("copied", "lines"), [("x.cuda()", [7]), ("x.float()", [])])
def test_a_loader_that_goes_to_a_function_of_another_file(tmp_path: Path, copied: str, lines: list[int]) -> None:
    script = LOADERS + "\n\nfit(get_loader('data', 8), 3)\nmodel.cuda()\n"
    training = f"def fit(loader, epochs):\n    for batch in loader:\n        x, y = batch\n        step({copied}, y)\n"
    assert in_project(tmp_path, "from solver import fit\n" + script, "", training) == [line + 1 for line in lines]


OWN = """\
import torch
from torch.utils.data import DataLoader
from photos import Photos


def make_loader(size):
    return DataLoader(Photos(), size, num_workers=4)


def score(net, loader):
    return sum(net(x{copied}).sum() for x in loader)


def train(net, {given}):
    for epoch in range(9):
        for x in {drawn}:
            net(x{copied}).sum().backward()
"""
USER = "import torch\nfrom own import make_loader, train\nfrom nets import net\n\ntrain(net, make_loader(8))\n"


@pytest.mark.parametrize(
    ("copied", "given", "drawn", "lines"),
    [
        pytest.param('.to("cuda")', "loader", "loader", [7], id="copied"),
        pytest.param("", "loader", "loader", [], id="not copied"),
        pytest.param('.to("cuda")', "size", "range(9)", [], id="of something else"),
    ],
)
def test_a_loader_that_others_give_back_to_its_file(
    tmp_path: Path, copied: str, given: str, drawn: str, lines: list[int]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text(USER)
    code = OWN.format(copied=copied, given=given, drawn=drawn)
    (tmp_path / "own.py").write_text(code.replace("for x in loader)", f"for x in {drawn})"))
    found = lint(Source.read(tmp_path / "own.py"), Settings.selecting("DATA02"), strict=True, project=Project())
    assert [finding.line for finding in found] == lines


TEMPLATE = """\
import torch
from photos import Photos


class Trainer:
    def __init__(self):
        self.loader = torch.utils.data.DataLoader(Photos(), 8, num_workers=4, pin_memory=False)
        self.device = torch.device("cuda")

    def step(self, data):
        raise NotImplementedError

    def start(self):
        for batch in self.loader:
            self.step(batch)
"""
HEIR = """\
import torch
from template import Trainer


class {cls}:
    def step(self, pair):
        x, y = pair
        return net({copied}) - y


Heir().start()
"""


@pytest.mark.parametrize(
    ("cls", "copied", "lines"),
    [
        ("Heir(Trainer)", "x.to(self.device)", [7]),
        ("Heir(Trainer)", "x.to(self.dtype)", []),
        ("Heir", "x.to(self.device)", []),
    ],
)
def test_a_batch_that_a_class_of_another_file_copies_for_its_base(
    tmp_path: Path, cls: str, copied: str, lines: list[int]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "template.py").write_text(TEMPLATE)
    (tmp_path / "main.py").write_text(HEIR.format(cls=cls, copied=copied))
    found = lint(Source.read(tmp_path / "template.py"), Settings.selecting("DATA02"), strict=True, project=Project())
    assert [finding.line for finding in found] == lines


PACKER = """\
import torch


class Packer:
    def __init__(self, on_gpu):
        self.on_gpu = on_gpu

    def pack(self, words, tags, weights=None):
        if self.on_gpu:
            return {packed}
        return words, tags
"""
TAGGER = """\
import itertools

import torch
from packer import Packer
from sentences import Sentences

loaders = [torch.utils.data.DataLoader(Sentences(n), 8, num_workers=4) for n in (5, 9)]
net = torch.nn.Linear(8, 2)
packer = Packer(torch.cuda.is_available())
for epoch in range(3):
    for words, tags in itertools.{chained}:
        words, tags = packer.pack(words, tags)
        net(words).sub(tags).sum().backward()
"""


@pytest.mark.parametrize(
    ("packed", "chained", "lines"),
    [
        ("words.transpose(0, 1).cuda(), tags.t().cuda()", "chain.from_iterable(loaders)", [7]),
        ("words.transpose(0, 1).cuda(), tags.t().cuda()", "chain(loaders[0], loaders[1])", [7]),
        ("words.transpose(0, 1).half(), tags.t()", "chain.from_iterable(loaders)", []),
        ("words, torch.ones(8).cuda()", "chain.from_iterable(loaders)", []),
        ("words, weights.cuda()", "chain.from_iterable(loaders)", []),
    ],
)
def test_an_object_of_another_file_copies_what_it_is_given(
    tmp_path: Path, packed: str, chained: str, lines: list[int]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "packer.py").write_text(PACKER.format(packed=packed))
    (tmp_path / "main.py").write_text(TAGGER.format(chained=chained))
    found = lint(Source.read(tmp_path / "main.py"), Settings.selecting("DATA02"), strict=True, project=Project())
    assert [finding.line for finding in found] == lines


GRAPHS = """\
import torch
from torch_geometric.data import DataLoader
from torch_geometric.datasets import TUDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TUDataset("data", "PROTEINS"), batch_size=64, num_workers=4)
for batch in loader:
    batch = batch.to(device)
    print(batch.x.sum())
"""


@pytest.mark.parametrize(("asked", "is_applied"), [("torch==1.4.0", False), ("torch==1.8.0", True)])
@pytest.mark.parametrize("code", ["DATA02", "XFER02"])
def test_old_batches_of_graphs_are_neither_pinned_nor_copied_in_the_background(
    tmp_path: Path, asked: str, is_applied: bool, code: str
) -> None:
    (tmp_path / "requirements.txt").write_text(asked + "\n")
    (tmp_path / "main.py").write_text(GRAPHS)
    source = Source.read(tmp_path / "main.py")
    (found,) = lint(source, Settings.selecting(code), strict=True, project=Project())
    assert found.fix is not None
    assert (found.fix.applicability is not Applicability.DISPLAY) is is_applied


CONVERTED = """\
import torch
from torch.utils.data import Dataset

if torch.cuda.is_available():
    from {} import FloatTensor
else:
    from torch import FloatTensor


class Answers(Dataset):
    def __init__(self, rows):
        self.rows = FloatTensor(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], index % 2
"""


@pytest.mark.parametrize(("package", "count"), [("torch.cuda", 0), ("torch", 1)])
def test_samples_may_be_tensors_of_a_type_that_lies_on_the_gpu(tmp_path: Path, package: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "samples.py").write_text(CONVERTED.format(package))
    main = HEADER + "from samples import Answers\nloader = DataLoader(Answers([[0.0] * 8] * 8), 4)\n" + LOOP
    (tmp_path / "main.py").write_text(main)
    source = Source.read(tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("DATA02"), strict=True, project=Project())) == count


SETTINGS = "import torch\n\nDEVICE = torch.device('{}')\n"
TRAINED_ON = """
from torch import nn
from torch.utils.data import DataLoader
from settings import DEVICE


def train(net: nn.Module, images, optimizer):
    loader = DataLoader(images, 4, shuffle=True, num_workers=2)
    for x, y in loader:
        x, y = x.to(DEVICE), y.to(DEVICE)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("device", "count"), [("cuda", 1), ("cpu", 0)])
def test_a_device_of_another_file_in_capitals(tmp_path: Path, device: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "settings.py").write_text(SETTINGS.format(device))
    (tmp_path / "main.py").write_text(TRAINED_ON)
    source = Source.read(tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("DATA02"), strict=True, project=Project())) == count


ACCELERATED = """
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import DataCollatorWithPadding


def train(model, optimizer, rows, tokenizer):
    def collate(examples):
        return {batch}

    accelerator = Accelerator()
    model, optimizer, loader = {wrapped}model, optimizer, DataLoader(rows, 8, collate_fn={collate}))
    for batch in loader:
        optimizer.zero_grad()
        accelerator.backward(model(batch{copied}).mean())
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("batch", "collate", "copied", "found"),
    [
        ("tokenizer.pad(examples, return_tensors='pt')", "collate", "", 0),
        ("None", "DataCollatorWithPadding(tokenizer)", "", 0),
        ("torch.stack(examples)", "collate", "", 1),
        ("tokenizer.pad([ids for ids, _ in examples]), torch.stack([x for _, x in examples])", "collate", "", 1),
        ("tokenizer.pad([ids for ids, _ in examples]), sounds.pad([x for _, x in examples])", "collate", "", 1),
        ("tokenizer.pad(examples, return_tensors='pt')", "collate", "['ids'].cuda()", 1),
    ],
    ids=["padded by a tokenizer", "by a collator of transformers", "images", "with images", "with sounds", "by hand"],
)
def test_words_that_a_framework_copies_are_a_few_bytes(batch: str, collate: str, copied: str, found: int) -> None:
    wrapped = "(" if copied else "accelerator.prepare("
    code = ACCELERATED.format(batch=batch, collate=collate, copied=copied, wrapped=wrapped)
    assert len(findings("import torch\n" + code, "DATA02")) == found
