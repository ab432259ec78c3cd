"""DIST02: a shuffling DistributedSampler that nobody tells the epoch."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest
import torch

from tests.support import findings, fixed

HEADER = """\
import itertools

import torch
import torch.nn as nn
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, TensorDataset
from tqdm import tqdm, trange

data = TensorDataset(torch.arange(12.0).reshape(12, 1))
seen = []


def step(model, optimizer, batch):
    seen.append(batch[0].flatten().tolist())
    optimizer.zero_grad()
    model(batch[0]).sum().backward()
    optimizer.step()


model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


# A sampler that is told its rank works without a process group.
DIST = "DistributedSampler(data, num_replicas=2, rank=0)"
MAKE = f"""
sampler = {DIST}
loader = DataLoader(data, 3, sampler=sampler)
"""
LOOP = """
for epoch in range(3):
    for batch in loader:
        step(model, optimizer, batch)
"""
ITERATOR = """
for epoch in range(3):
    batches = iter(loader)
    for _ in range(2):
        step(model, optimizer, next(batches))
"""

# Every case is run before and after its fix.
CASES = [
    pytest.param(MAKE + LOOP, "    sampler.set_epoch(epoch)", id="V1 same function"),
    pytest.param(
        f"""
        def main(distributed=True):
            if distributed:
                sampler = {DIST}
            else:
                sampler = None
            loader = DataLoader(data, 3, shuffle=sampler is None, sampler=sampler)
            for ep in trange(3):
                for i, batch in enumerate(tqdm(loader)):
                    step(model, optimizer, batch)

        main()
        """,
        "        if sampler is not None:\n            sampler.set_epoch(ep)",
        id="V2 conditional statement",
    ),
    pytest.param(
        f"""
        distributed = True
        sampler = {DIST} if distributed else None
        loader = DataLoader(data, 3, shuffle=sampler is None, sampler=sampler)
        for e in range(3):
            for batch in loader:
                step(model, optimizer, batch)
        """,
        "    if sampler is not None:\n        sampler.set_epoch(e)",
        id="V2 conditional expression",
    ),
    pytest.param(
        "distributed = True\n" + MAKE.replace(DIST, f"{DIST} if distributed else RandomSampler(data)") + LOOP,
        "    if isinstance(sampler, DistributedSampler):\n        sampler.set_epoch(epoch)",
        id="V2 another sampler",
    ),
    pytest.param(
        f"loader = DataLoader(data, batch_size=3, sampler={DIST})" + LOOP,
        "    loader.sampler.set_epoch(epoch)",
        id="V3 only in the loader",
    ),
    pytest.param(
        "distributed = True\nif distributed:"
        + indent(MAKE, "    ")
        + "else:\n    loader = DataLoader(data, batch_size=3, shuffle=True)"
        + LOOP,
        "    if isinstance(loader.sampler, DistributedSampler):\n        loader.sampler.set_epoch(epoch)",
        id="V3 sampler that may not exist",
    ),
    pytest.param(
        f"""
        class Trainer:
            def __init__(self, data):
                self.train_sampler = {DIST}
                self.loader = DataLoader(data, batch_size=3, sampler=self.train_sampler)

            def run_epoch(self):
                for batch in self.loader:
                    step(model, optimizer, batch)

            def fit(self):
                for epoch in range(3):
                    self.run_epoch()

        Trainer(data).fit()
        """,
        "            self.train_sampler.set_epoch(epoch)",
        id="V4 attribute, epoch in a method",
    ),
    pytest.param(
        f"""
        class Trainer:
            def __init__(self, data):
                self.make(data)

            def make(self, data):
                self.train_sampler = {DIST}
                self.loader = DataLoader(data, batch_size=3, sampler=self.train_sampler)

            def fit(self):
                for epoch in range(3):
                    for batch in self.loader:
                        step(model, optimizer, batch)

        Trainer(data).fit()
        """,
        "            self.train_sampler.set_epoch(epoch)",
        id="V4 attribute that is made beside the loader",
    ),
    pytest.param(
        dedent(
            f"""
            def make(data, distributed=True):
                sampler = {DIST} if distributed else None
                return DataLoader(data, batch_size=3, sampler=sampler), 1

            loader, _ = make(data)
            """
        )
        + LOOP,
        "    if isinstance(loader.sampler, DistributedSampler):\n        loader.sampler.set_epoch(epoch)",
        id="V5 builder returns the loader",
    ),
    pytest.param(
        f"""
        def train(loader):
            for batch in loader:
                step(model, optimizer, batch)

        loader = DataLoader(data, batch_size=3, sampler={DIST})
        for epoch in range(3):
            train(loader)
        """,
        "    loader.sampler.set_epoch(epoch)",
        id="loader handed to a function of the file",
    ),
    pytest.param(
        f"""
        class Trainer:
            def __init__(self, loader):
                self.loader = loader

            def run_epoch(self):
                for batch in self.loader:
                    step(model, optimizer, batch)

            def fit(self):
                for epoch in range(3):
                    self.run_epoch()

        Trainer(DataLoader(data, batch_size=3, sampler={DIST})).fit()
        """,
        "            if isinstance(self.loader.sampler, DistributedSampler):\n"
        "                self.loader.sampler.set_epoch(epoch)",
        id="loader handed to a trainer",
    ),
    pytest.param(
        MAKE + ITERATOR, "    sampler.set_epoch(epoch)", id="drawn from an iterator that each epoch begins again"
    ),
    pytest.param(
        MAKE + LOOP.replace("for epoch in range(3)", "epoch = 0\nwhile epoch < 3") + "    epoch += 1\n",
        "    sampler.set_epoch(epoch)",
        id="V6 while",
    ),
    pytest.param(
        MAKE + LOOP.replace("for epoch", "for _"), "    sampler.set_epoch(sampler.epoch + 1)", id="V6 no number"
    ),
    pytest.param(
        MAKE.replace("3, sampler=sampler", "batch_sampler=BatchSampler(sampler, 3, False)") + LOOP,
        "    sampler.set_epoch(epoch)",
        id="batch sampler",
    ),
]


def epochs_of(code: str) -> list[list[Any]]:
    """What each of three epochs saw."""
    scope: dict[str, Any] = {}
    torch.manual_seed(0)
    exec(code.replace("from tqdm import tqdm, trange", "tqdm, trange = iter, range"), scope)
    seen = scope["seen"]
    per_epoch = len(seen) // 3
    return [seen[i : i + per_epoch] for i in range(0, len(seen), per_epoch)]


@pytest.mark.parametrize(("code", "added"), CASES)
def test_fixed(code: str, added: str) -> None:
    before = HEADER + dedent(code)
    found = findings(before, "DIST02")
    assert [before.splitlines()[finding.line - 1].count("DistributedSampler(") for finding in found] == [1]
    after = fixed(before, "DIST02")
    assert after.replace("\n" + added, "", 1) == before
    first, second, third = epochs_of(before)
    assert first == second == third
    first, second, third = epochs_of(after)
    assert first != second != third


SILENT = [
    pytest.param(MAKE + LOOP.replace("range(3)", "range(1)"), id="one epoch"),
    pytest.param(MAKE + LOOP.replace("3):", "3):\n    sampler.set_epoch(epoch)"), id="told"),
    pytest.param(MAKE + LOOP.replace("3):", "3):\n    loader.sampler.set_epoch(epoch)"), id="told through the loader"),
    pytest.param(MAKE + "alias = sampler" + LOOP.replace("3):", "3):\n    alias.set_epoch(epoch)"), id="alias"),
    pytest.param(
        MAKE
        + 'loaders = {"train": loader}'
        + LOOP.replace("3):", '3):\n    loaders["train"].sampler.set_epoch(epoch)'),
        id="told through a dict",
    ),
    pytest.param(
        "def tell(loader, epoch):\n    if hasattr(loader.sampler, 'set_epoch'):\n"
        "        loader.sampler.set_epoch(epoch)\n" + MAKE + LOOP.replace("3):", "3):\n    tell(loader, epoch)"),
        id="told by a helper",
    ),
    pytest.param(MAKE.replace("rank=0", "rank=0, shuffle=False") + LOOP, id="N1 no shuffling"),
    pytest.param(MAKE.replace("rank=0", "rank=0, shuffle=flag") + LOOP, id="shuffling unknown"),
    pytest.param(MAKE.replace("rank=0", "rank=0, **options") + LOOP, id="options out of sight"),
    pytest.param(
        f"""
        loader = DataLoader(data, 3, sampler={DIST})
        for epoch in range(3):
            with torch.no_grad():
                for batch in loader:
                    model(batch[0])
        """,
        id="N1 evaluation",
    ),
    pytest.param(MAKE + "for batch in loader:\n    step(model, optimizer, batch)\n", id="N2 single pass"),
    pytest.param(
        MAKE + "batches = iter(loader)" + ITERATOR.replace("    batches = iter(loader)\n", ""),
        id="one iterator for all epochs",
    ),
    pytest.param("import lightning\n" + MAKE + LOOP, id="N3 framework"),
    pytest.param(
        "from accelerate import Accelerator\nloader = Accelerator().prepare(DataLoader(data, sampler="
        + DIST
        + "))"
        + LOOP,
        id="N3 prepared",
    ),
    pytest.param("loader = DataLoader(data, 3, sampler=RandomSampler(data))" + LOOP, id="N4 another sampler"),
    pytest.param(f"def make():\n    return DataLoader(data, 3, sampler={DIST})\n", id="N6 library code"),
    pytest.param(MAKE + "from engine import train\ntrain(model, sampler)" + LOOP, id="sampler handed away"),
    pytest.param(MAKE + "from engine import shuffle\nshuffle(loader)" + LOOP, id="loader handed away"),
    pytest.param(
        "class Mine(DistributedSampler):\n    def __iter__(self):\n        self.epoch += 1\n"
        "        return super().__iter__()\n" + MAKE.replace("DistributedSampler", "Mine") + LOOP,
        id="N7 sampler that counts",
    ),
    pytest.param(
        """
        for epoch in range(3):
            loader = DataLoader(data, 3, sampler=DistributedSampler(data, 2, 0, seed=epoch))
            for batch in loader:
                step(model, optimizer, batch)
        """,
        id="made again in every epoch",
    ),
    pytest.param(MAKE + "for epoch in range(3):\n    from_engine(model, loader)\n", id="trained out of sight"),
]


@pytest.mark.parametrize("code", SILENT)
def test_silent(code: str) -> None:
    assert not findings(HEADER + dedent(code), "DIST02")


def test_an_attribute_of_another_name_that_is_written_by_hand() -> None:
    for name, found in (("size", 1), ("epoch", 0)):
        code = MAKE + f"options.__setattr__('{name}', 3)" + LOOP
        assert len(findings(HEADER + dedent(code), "DIST02")) == found


RUNNER = """
class Runner:
    def __init__(self, hooks):
        self.hooks = hooks
        self.loader = DataLoader(data, 3, sampler=DistributedSampler(data, num_replicas=2, rank=0))

    def run(self):
        for epoch in range(3):
            {before}
            for batch in self.loader:
                step(model, optimizer, batch)
"""


@pytest.mark.parametrize(
    ("before", "count"),
    [
        ("[hook.before_epoch(self) for hook in self.hooks]", 0),
        ("[getattr(hook, 'before_epoch')(self) for hook in self.hooks]", 0),
        ("[hook.before_epoch(epoch) for hook in self.hooks]", 1),
        ("print(self)", 1),
    ],
)
def test_a_hook_that_is_given_the_object_may_tell_the_sampler_in_it(before: str, count: int) -> None:
    assert len(findings(HEADER + RUNNER.format(before=before), "DIST02")) == count
