"""DIST02: generators without end, each round of which is an epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset

from tests.support import fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

FOR = """
def again(batches):
    while True:
        for batch in batches:
            yield batch
"""
FROM = """
def again(batches):
    while 1:
        yield from batches
"""
NEXT = """
def again(batches):
    iterator = batches.__iter__()
    while True:
        try:
            yield iterator.__next__()
        except StopIteration:
            iterator = batches.__iter__()
"""
ONCE = """
def again(batches):
    for batch in batches:
        yield batch
"""
TOLD = FOR.replace("        for", "        batches.sampler.set_epoch(batches.sampler.epoch + 1)\n        for")

TRAIN = """
def fit(model, optimizer, data):
    seen = []
    loader = DataLoader(data, 3, sampler=DistributedSampler(data, 2, 0))
    {draws}
        seen.append(batch.flatten().tolist())
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        if len(seen) == 6:
            break
    return seen
"""
BY_NEXT = "batches = again(loader)\n    for step in range(9):\n        (batch,) = next(batches)"
BY_LOOP = "for (batch,) in again(loader):"
IN_WHILE = "batches = again(loader)\n    while len(seen) < 9:\n        (batch,) = next(batches)"
HEAD = "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler\n"


def _epochs(code: str) -> list[Any]:
    torch.manual_seed(0)
    space: dict[str, Any] = {}
    exec(compile(code, "fit", "exec"), space)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = space["fit"](model, optimizer, TensorDataset(torch.arange(12.0).reshape(12, 1)))
    return [seen[:2], seen[2:4], seen[4:]]


@pytest.mark.parametrize("generator", [FOR, FROM])
@pytest.mark.parametrize("draws", [BY_NEXT, BY_LOOP, IN_WHILE])
def test_each_round_gets_an_order_of_its_own(generator: str, draws: str) -> None:
    code = HEAD + generator + TRAIN.format(draws=draws)
    after = fixed(code, "DIST02", unsafe=True)
    assert "    if isinstance(batches.sampler, DistributedSampler):\n" in after
    first, second, third = _epochs(code)
    assert first == second == third
    first, second, third = _epochs(after)
    assert first != second != third != first


@pytest.mark.parametrize(
    ("generator", "draws", "count"),
    [
        (NEXT, BY_NEXT, 1),
        (ONCE, BY_NEXT, 0),
        (TOLD, BY_NEXT, 0),
        (FOR.replace("True", "batches.more"), BY_NEXT, 0),  # whoever sees to that may see to the sampler, too
        (FOR, BY_NEXT.replace("again(loader)", "again(data)"), 0),
        (FOR, "others = again(loader)\n    for (batch,) in data:", 0),
    ],
)
@pytest.mark.parametrize("is_far", [False, True])
def test_which_generators_begin_again(tmp_path: Path, generator: str, draws: str, count: int, is_far: bool) -> None:
    code = HEAD + ("from helpers import again\n" if is_far else generator) + TRAIN.format(draws=draws)
    (tmp_path / "helpers.py").write_text(generator)
    (tmp_path / "fit.py").write_text(code)
    source = Source.read(tmp_path / "fit.py")
    assert len(lint(source, Settings.selecting("DIST02"), strict=True, project=Project())) == count


MOVED = """
import torch


def moved(batch):
    if isinstance(batch, torch.Tensor):
        return batch.cuda()
    return batch
"""


def test_a_network_that_gets_the_batches_sets_no_epoch(tmp_path: Path) -> None:
    code = (
        HEAD
        + "from helpers import again, moved\n"
        + TRAIN.format(draws=BY_NEXT.replace("(batch,) = next(batches)", "batch = moved(next(batches))")).replace(
            "model(batch).sum()", "DistributedDataParallel(model)(batch).sum()"
        )
    )
    code = code.replace("import torch\n", "import torch\nfrom torch.nn.parallel import DistributedDataParallel\n", 1)
    (tmp_path / "helpers.py").write_text(NEXT + MOVED)
    (tmp_path / "fit.py").write_text(code)
    source = Source.read(tmp_path / "fit.py")
    assert len(lint(source, Settings.selecting("DIST02"), strict=True, project=Project())) == 1
