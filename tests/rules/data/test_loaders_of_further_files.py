"""DATA02, XFER02: loaders that one file makes, another one keeps or pins, and a further one draws from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.data.test_loaders_across_files import READ, found

SEVERAL_BUILT = """\
from torch.utils.data import DataLoader
from samples import Dataset

def get_loaders(config):
    return DataLoader(Dataset(config), 4, num_workers=2), DataLoader(Dataset(config), 8, num_workers=2)
"""
KEEPER = """\
from main import get_loaders

class Keeper:
    def __init__(self, config):
        self.train_loader, self.test_loader = get_loaders(config)
"""
RUNNER = """\
from keeper import {}
from tqdm import tqdm

class Runner({}):
    def run(self, device, is_main):
        bar = {}
        for i, (x, y) in enumerate(bar):
            self.step(x.{}, y)
"""


@pytest.mark.parametrize(
    ("base", "bar", "copied", "lines"),
    [
        ("Keeper", "tqdm(self.train_loader, ncols=80) if is_main else self.train_loader", "to(device)", [5, 5]),
        ("Keeper", "tqdm(self.train_loader)", "float()", []),
        ("Keeper", "range(len(self.train_loader))", "to(device)", []),
        ("Keeper", "tqdm(self.samples)", "to(device)", []),
        ("object", "tqdm(self.train_loader)", "to(device)", []),
    ],
)
def test_a_class_of_a_third_file_draws_from_what_its_base_keeps(
    tmp_path: Path, base: str, bar: str, copied: str, lines: list[int]
) -> None:
    files = {"main": SEVERAL_BUILT, "samples": READ.format("self.paths[i]"), "keeper": KEEPER}
    run = RUNNER.format("Keeper", base, bar, copied)
    assert [line for code, line in found(tmp_path, **files, run=run) if code == "DATA02"] == lines


KEPT_BY_ANOTHER = """\
from torch.utils.data import DataLoader
from samples import Dataset
from keeper import Keeper
from parts import Part

loader = DataLoader(Dataset("data"), 4, num_workers=2)
keeper = Keeper(loader, Part())
keeper.run()
"""
KEEPING = """\
class Keeper:
    def __init__(self, loader, part):
        {}
        self.part, self.device = part, "cuda"

    def run(self):
        self.part.run(self)
"""
PART = """\
class Part:
    def run(self, keeper):
        for i, (x, y) in enumerate(
                keeper.{}):
            x = x.{}
            self.step(x, y)
"""


@pytest.mark.parametrize(
    ("kept", "drawn", "copied", "lines"),
    [
        ("self.train_loader = loader", "train_loader", "to(keeper.device)", [6]),
        ("self.train_loader = loader", "train_loader", "float()", []),
        ("self.test_loader = loader", "train_loader", "to(keeper.device)", []),
        ("self.train_loader = list(loader)", "train_loader", "to(keeper.device)", []),
    ],
)
def test_a_further_file_draws_from_what_an_object_keeps(
    tmp_path: Path, kept: str, drawn: str, copied: str, lines: list[int]
) -> None:
    files = {"main": KEPT_BY_ANOTHER, "samples": READ.format("self.paths[i]"), "keeper": KEEPING.format(kept)}
    parts = PART.format(drawn, copied)
    assert [line for code, line in found(tmp_path, **files, parts=parts) if code == "DATA02"] == lines


PINNING = """\
from torch.utils.data import DataLoader
from samples import Dataset

{collate}

def get_loaders(config):
    train, test = Dataset("train"), Dataset("test")
    return train, test, DataLoader(train, 4, num_workers=2{options}), DataLoader(test, 4, num_workers=2{options})
"""
BATCHES = """\
class Batch:
    def __init__(self, samples):
        self.samples = samples

    def to(self, device):
        return self


def collate(samples):
    return Batch(samples)
"""
DRAWING = """\
import torch
from loading import get_loaders

def run(config, net):
    device = torch.device("{device}")
    train, test, loader, test_loader = get_loaders(config)
    for x, y in loader:
        x = x{view}.to(device)
        net(x).sum().backward()
"""


@pytest.mark.parametrize(
    ("options", "collate", "device", "view", "lines"),
    [
        (", pin_memory=True", "", "cuda", "", [8]),
        (", pin_memory=True", "", "cpu", "", []),
        (", pin_memory=True", "", "cuda", "[:, 0]", []),
        (", pin_memory=True", "", "cuda", ".float()", []),
        (", pin_memory=config.pin", "", "cuda", "", []),
        (", pin_memory=True, collate_fn=collate", BATCHES, "cuda", "", []),
    ],
)
def test_batches_of_a_loader_that_another_file_pins(
    tmp_path: Path, options: str, collate: str, device: str, view: str, lines: list[int]
) -> None:
    loading = PINNING.format(options=options, collate=collate)
    main = DRAWING.format(device=device, view=view)
    files = {"main": main, "samples": READ.format("self.paths[i]"), "loading": loading}
    assert [line for code, line in found(tmp_path, **files) if code == "XFER02"] == lines
