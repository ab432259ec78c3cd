"""DIST02: classes of loaders that make their samplers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

LOADERS = """
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


class Digits(DataLoader):
    def __init__(self, data, size, train=True):
        sampler = None
        if {asked}:
            sampler = DistributedSampler(data{options})
        super().__init__(data, batch_size=size, shuffle=sampler is None, sampler=sampler)
{rest}
"""
USER = """
class Trainer:
    def __init__(self, net, optimizer, batches):
        self.net, self.optimizer, self.batches = net, optimizer, batches

    def fit(self, epochs):
        for epoch in range(epochs):
            {first}
            self.one_epoch()

    def one_epoch(self):
        for x, y in self.batches:
            self.optimizer.zero_grad()
            (self.net(x) - y).square().mean().backward()
            self.optimizer.step()


def run(net, optimizer, data):
    batches = Digits(data, 8{given})
    Trainer(net, optimizer, batches).fit(9)
"""


def _loaders(asked: str = "train and dist.is_initialized()", options: str = "", rest: str = "") -> str:
    return LOADERS.format(asked=asked, options=options, rest=rest)


def _user(first: str = "print(epoch)", given: str = "") -> str:
    return USER.format(first=first, given=given)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        pytest.param(_loaders() + _user(), 1, id="one that shuffles"),
        pytest.param(_loaders("train") + _user(given=", train=False"), 0, id="told that it is for tests"),
        pytest.param(_loaders(options=", shuffle=False") + _user(), 0, id="one that does not shuffle"),
        pytest.param(_loaders() + _user("self.batches.sampler.set_epoch(epoch)"), 0, id="told the epoch"),
        pytest.param(
            _loaders(rest="        self.told = sampler\n\n    def start(self, n):\n        self.told.set_epoch(n)\n")
            + _user("self.batches.start(epoch)"),
            0,
            id="told the epoch by the loader",
        ),
        pytest.param(
            _loaders(rest="\n    def __iter__(self):\n        return iter(self.dataset)\n") + _user(),
            0,
            id="a loader that draws in its own way",
        ),
    ],
)
def test_a_loader_that_makes_its_sampler(code: str, count: int) -> None:
    assert len(findings(code, "DIST02")) == count


def test_the_fix_goes_through_the_loader() -> None:
    code = _loaders() + _user()
    after = fixed(code, "DIST02", unsafe=True)
    assert "            if isinstance(self.batches.sampler, DistributedSampler):\n" in after
    assert "                self.batches.sampler.set_epoch(epoch)\n" in after
    assert findings(after, "DIST02") == []


ONE_FILE = """
from loaders import Digits

def run(net, optimizer, data):
    batches = Digits(data, 8{given})
    for epoch in range(9):
        {first}
        for x, y in batches:
            optimizer.zero_grad()
            (net(x) - y).square().mean().backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("first", "given", "count"),
    [
        ("print(epoch)", "", 1),
        ("batches.sampler.set_epoch(epoch)", "", 0),
        ("print(epoch)", ", train=False", 0),
    ],
)
def test_a_loader_of_a_class_of_another_file(tmp_path: Path, first: str, given: str, count: int) -> None:
    (tmp_path / "loaders.py").write_text(_loaders("train"))
    (tmp_path / "main.py").write_text(ONE_FILE.format(first=first, given=given))
    source = Source.read(tmp_path / "loaders.py")
    assert len(lint(source, Settings.selecting("DIST02"), strict=True, project=Project())) == count
