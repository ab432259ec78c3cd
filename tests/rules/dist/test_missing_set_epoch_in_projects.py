"""DIST02: samplers, loaders and epochs that stand in several files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Finding
from torchlint.fixing.passes import fix_source, fix_together
from torchlint.semantics.project import Project
from torchlint.source import Source

MAIN = """
import torch
from engine import train_one_epoch
from torch.utils.data import DataLoader, DistributedSampler


def main(data):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, 3, sampler=DistributedSampler(data))
    for epoch in range(3):
        train_one_epoch(model, loader, optimizer, epoch)
"""


ENGINE = """
from tqdm import tqdm


def train_one_epoch(model, batches, optimizer, epoch):
    {}
    for (x,) in tqdm(batches, total=len(batches)):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("first", "found"),
    [
        pytest.param("model.train()", 1, id="only draws"),
        pytest.param("batches.sampler.set_epoch(epoch)", 0, id="tells it the epoch"),
        pytest.param("begin(batches, epoch)", 0, id="hands it on"),
    ],
)
def test_trained_in_a_function_of_another_file(tmp_path: Path, first: str, found: int) -> None:
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "engine.py").write_text(ENGINE.format(first))
    source = Source.read(tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("DIST02"), strict=True, project=Project())) == found
    after = fix_source(source, Settings.selecting("DIST02"), unsafe=True, strict=True, project=Project()).source.text
    assert after.count("loader.sampler.set_epoch(epoch)") == found


_BUILDER = """
from torch.utils.data import DataLoader, DistributedSampler


def loaders(train, test):
    sampler = {sampler}
    test_sampler = DistributedSampler(test, shuffle=False)
    return DataLoader(train, 8, sampler=sampler), DataLoader(test, 8, sampler=test_sampler)
"""


_CALLER = """
from tqdm import tqdm
from builder import loaders


def fit(model, optimizer, train, test, epochs):
    train_loader, test_loader = loaders(train, test)
    for epoch in range(epochs):
        bar = tqdm(train_loader)
        {first}
        for x, y in bar:
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
"""


def _found_in_builder(directory: Path, builder: str, caller: str) -> list[Finding]:
    (directory / "builder.py").write_text(builder)
    (directory / "fit.py").write_text(caller)
    source = Source.from_text(builder, directory / "builder.py")
    return lint(source, Settings.selecting("DIST02"), strict=True, project=Project())


def test_a_sampler_of_a_loader_that_another_file_trains_on(tmp_path: Path) -> None:
    builder = _BUILDER.format(sampler="DistributedSampler(train)")
    [finding] = _found_in_builder(tmp_path, builder, _CALLER.format(first="pass"))
    assert finding.line == 6
    assert "of the loop in line 8 of fit.py" in " ".join(finding.message.replace("all epochs ", "").split())


@pytest.mark.parametrize(
    ("sampler", "old", "new"),
    [
        ("DistributedSampler(train)", "        pass\n", "        train_loader.sampler.set_epoch(epoch)\n"),
        ("DistributedSampler(train)", "tqdm(train_loader)", "tqdm(test_loader)"),
        ("DistributedSampler(train)", "train_loader, test_loader =", "test_loader, train_loader ="),
        ("DistributedSampler(train)", "            optimizer.step()\n", ""),
        ("DistributedSampler(train)", "        bar =", "        train_loader, _ = loaders(train, test)\n        bar ="),
        ("DistributedSampler(train)", "from tqdm import", "from accelerate import Accelerator\nfrom tqdm import"),
        ("DistributedSampler(train, shuffle=False)", "", ""),
    ],
)
def test_another_file_that_sees_to_the_order_or_does_not_repeat_it(
    tmp_path: Path, sampler: str, old: str, new: str
) -> None:
    builder, caller = _BUILDER.format(sampler=sampler), _CALLER.format(first="pass").replace(old, new)
    assert _found_in_builder(tmp_path, builder, caller) == []


def test_a_loader_that_is_made_in_one_way_or_another_and_drawn_from_with_a_bar_or_without(tmp_path: Path) -> None:
    builder = _BUILDER.format(sampler="DistributedSampler(train)").replace(
        "def loaders", "def others(train):\n    pass\n\n\ndef loaders"
    )
    builder = builder.replace(", DataLoader(test, 8, sampler=test_sampler)", "")
    caller = """
from tqdm import tqdm
from builder import loaders, others


class Learner:
    def __init__(self, model, loader, optimizer):
        self.model, self.optimizer = model, optimizer
        self.loader = loader

    def fit(self):
        while True:
            for x, y in tqdm(self.loader) if self.first else self.loader:
                self.optimizer.zero_grad()
                (self.model(x) - y).square().mean().backward()
                self.optimizer.step()


def run(model, optimizer, train, test):
    if test is None:
        loader = loaders(train, test)
    else:
        loader = others(train)
    Learner(model, loader, optimizer).fit()
"""
    assert [finding.line for finding in _found_in_builder(tmp_path, builder, caller)] == [10]
    assert _found_in_builder(tmp_path, builder, caller.replace("while True:", "if True:")) == []


def test_a_function_of_the_other_file_that_gets_the_loader(tmp_path: Path) -> None:
    caller = """
from builder import loaders


def one_epoch(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()


def fit(model, optimizer, train, test):
    train_loader, test_loader = loaders(train, test)
    for epoch in range(9):
        one_epoch(model, optimizer, train_loader)
"""
    builder = _BUILDER.format(sampler="DistributedSampler(train)")
    assert [finding.line for finding in _found_in_builder(tmp_path, builder, caller)] == [6]
    assert _found_in_builder(tmp_path, builder, caller.replace("    for epoch in range(9):\n    ", "")) == []


_WHOLE = """
from builder import loaders


def fit(model, optimizer, train, test):
    {make}
    for {counter} in range(3):
        {draw}


def one_epoch(model, optimizer, batches):
    for (x,) in batches:
        seen.append(x.flatten().tolist())
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


seen = []
"""


_PAIR = "train_loader, test_loader = loaders(train, test)"


_EPOCH = "one_epoch(model, optimizer, train_loader)"


_ONLY = "DistributedSampler(train, 2, 0)"


_SAMPLER = "train_loader.sampler"


_CLASS = """
from builder import loaders


class Trainer:
    def __init__(self, train, test):
        self.loader, _ = loaders(train, test)

    def run(self, model, optimizer):
        for epoch in range(3):
            self.epoch(model, optimizer)

    def epoch(self, model, optimizer):
        for (x,) in self.loader:
            seen.append(x.flatten().tolist())
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


def fit(model, optimizer, train, test):
    Trainer(train, test).run(model, optimizer)


seen = []
"""


ACROSS_FILES = [
    pytest.param(_ONLY, "", _PAIR, "epoch", _EPOCH, [f"{_SAMPLER}.set_epoch(epoch)"], id="certain"),
    pytest.param(_ONLY, "", _PAIR, "_", _EPOCH, [f"{_SAMPLER}.set_epoch({_SAMPLER}.epoch + 1)"], id="no number"),
    pytest.param(
        f"{_ONLY} if test else None",
        "",
        _PAIR,
        "epoch",
        _EPOCH,
        [
            f"if isinstance({_SAMPLER}, torch.utils.data.DistributedSampler):",
            f"    {_SAMPLER}.set_epoch(epoch)",
            "import torch",
        ],
        id="or none",
    ),
    pytest.param(
        f"BatchSampler({_ONLY}, 3, False)",
        "batch_",
        _PAIR,
        "epoch",
        _EPOCH,
        ["train_loader.batch_sampler.sampler.set_epoch(epoch)"],
        id="in batches",
    ),
    pytest.param(
        _ONLY,
        "",
        _PAIR + "\n    batches = train_loader",
        "epoch",
        "one_epoch(model, optimizer, batches)",
        ["batches.sampler.set_epoch(epoch)"],
        id="another name",
    ),
]


def _builder(sampler: str, batch: str) -> str:
    text = _BUILDER.format(sampler=sampler).replace(
        "DistributedSampler(test, shuffle", "DistributedSampler(test, 2, 0, shuffle"
    )
    size = "" if batch else "3, "
    return text.replace("import DataLoader", "import BatchSampler, DataLoader").replace(
        "train, 8, sampler=sampler", f"train, {size}{batch}sampler=sampler"
    )


def _fixed_files(folder: Path, builder: str, caller: str) -> tuple[str, str]:
    (folder / "builder.py").write_text(builder)
    (folder / "fit.py").write_text(caller)
    sources = [Source.read(folder / "builder.py"), Source.read(folder / "fit.py")]
    settings = replace(Settings.selecting("DIST02"), unsafe_fixes=True)
    results = fix_together(sources, dict.fromkeys((s.path for s in sources), settings), Project(), strict=True)
    after = [results[source.path] for source in sources]
    assert after[0].remaining == after[1].remaining == ()
    return after[0].source.text, after[1].source.text


def _orders(builder: str, caller: str, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """What each of three epochs saw."""
    module = ModuleType("builder")
    exec(builder, vars(module))
    monkeypatch.setitem(sys.modules, "builder", module)
    scope: dict[str, Any] = {}
    exec(caller, scope)
    model = torch.nn.Linear(1, 1)
    data = TensorDataset(torch.arange(12.0).reshape(12, 1))
    scope["fit"](model, torch.optim.SGD(model.parameters(), lr=0.1), data, data)
    seen = scope["seen"]
    return [seen[i : i + len(seen) // 3] for i in range(0, len(seen), len(seen) // 3)]


@pytest.mark.parametrize(("sampler", "batch", "make", "counter", "draw", "added"), ACROSS_FILES)
def test_the_epochs_of_the_other_file_tell_the_sampler(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sampler: str,
    batch: str,
    make: str,
    counter: str,
    draw: str,
    added: list[str],
) -> None:
    builder, caller = _builder(sampler, batch), _WHOLE.format(make=make, counter=counter, draw=draw)
    same, after = _fixed_files(tmp_path, builder, caller)
    assert same == builder
    assert sorted(set(after.splitlines()) - set(caller.splitlines())) == sorted(
        line if line.startswith("import") else " " * 8 + line for line in added
    )
    first, second, third = _orders(builder, caller, monkeypatch)
    assert first == second == third
    first, second, third = _orders(builder, after, monkeypatch)
    assert first != second != third


def test_the_epochs_of_a_class_of_the_other_file_tell_the_sampler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = _builder(_ONLY, "")
    _, after = _fixed_files(tmp_path, builder, _CLASS)
    assert after == _CLASS.replace("range(3):\n", "range(3):\n            self.loader.sampler.set_epoch(epoch)\n")
    first, second, third = _orders(builder, after, monkeypatch)
    assert first != second != third


def test_epochs_of_a_comprehension_have_no_place_for_a_statement(tmp_path: Path) -> None:
    caller = _WHOLE.format(make=_PAIR, counter="epoch", draw=_EPOCH)
    counted = caller.replace(f"    for epoch in range(3):\n        {_EPOCH}", f"    [{_EPOCH} for epoch in range(3)]")
    [finding] = _found_in_builder(tmp_path, _builder(_ONLY, ""), counted)
    assert finding.no_fix == "the epochs are counted by a comprehension, where no statement can stand"


_LENDER = """
from torch.utils import data
from torch.utils.data.distributed import DistributedSampler


def data_sampler(dataset, shuffle, distributed):
    if distributed:
        return DistributedSampler(dataset, {given})
    return data.RandomSampler(dataset)
"""
_BORROWER = """
import torch
from lender import data_sampler
from torch.utils.data import DataLoader


def main(data, args):
    model, optimizer = torch.nn.Linear(1, 1), torch.optim.SGD([], lr=0.1)
    sampler = {call}
    loader = DataLoader(data, 3, sampler=sampler)
    for epoch in range(3):
        {first}
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
"""
_SHUFFLED = "data_sampler(data, shuffle=True, distributed=args.distributed)"


@pytest.mark.parametrize(
    ("given", "call", "first", "found"),
    [
        pytest.param("shuffle=shuffle", _SHUFFLED, "pass", 1, id="told to shuffle"),
        pytest.param("shuffle=True", _SHUFFLED, "pass", 1, id="always shuffles"),
        pytest.param("", "data_sampler(data, False, True)", "pass", 1, id="shuffles by default"),
        pytest.param("shuffle=False", _SHUFFLED, "pass", 0, id="never shuffles"),
        pytest.param("shuffle=shuffle", "data_sampler(data, False, True)", "pass", 0, id="told not to shuffle"),
        pytest.param("shuffle=shuffle", "data_sampler(data, args.shuffle, True)", "pass", 0, id="who knows"),
        pytest.param("shuffle=shuffle", "data_sampler(data, True, True) if args else None", "pass", 0, id="or none"),
        pytest.param("shuffle=shuffle", _SHUFFLED, "sampler.set_epoch(epoch)", 0, id="is told the epoch"),
        pytest.param("shuffle=shuffle", _SHUFFLED, "loader.sampler.set_epoch(epoch)", 0, id="is told by the loader"),
        pytest.param("shuffle=shuffle", _SHUFFLED, "args.begin(sampler, epoch)", 0, id="is handed on"),
        pytest.param("shuffle=shuffle", _SHUFFLED, "args.begin(loader, epoch)", 0, id="the loader is handed on"),
        pytest.param("shuffle=shuffle", _SHUFFLED, "sampler.epoch = epoch", 0, id="is set"),
    ],
)
def test_made_by_a_function_of_another_file(tmp_path: Path, given: str, call: str, first: str, found: int) -> None:
    (tmp_path / "lender.py").write_text(_LENDER.format(given=given))
    (tmp_path / "main.py").write_text(_BORROWER.format(call=call, first=first))
    source = Source.read(tmp_path / "main.py")
    findings = lint(source, Settings.selecting("DIST02"), strict=True, project=Project())
    assert len(findings) == found
    assert all(finding.fix is None for finding in findings)
