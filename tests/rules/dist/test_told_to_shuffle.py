"""DIST02: functions that make a loader, and are told whether it shuffles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

MAKER = """
from torch.utils.data import DataLoader, DistributedSampler


def make(data, part="test", shuffle=False):
    if data is None:
        return None
    sampler = DistributedSampler(data, shuffle={shuffle})
    {loaders}
    return loader

"""
ONE = "loader = DataLoader(data, 8, sampler=sampler)"
IN_TRAINING = 'loader = DataLoader(data, 8, sampler=sampler) if part == "train" else DataLoader(data, 8)'
ELSE = 'loader = DataLoader(data, 8) if part == "train" else DataLoader(data, 8, sampler=sampler)'
ALONE = 'if part == "alone":\n        return DataLoader(data, 8)\n    ' + ONE

USER = """
def both(train, test):
    first = make(train, {train})
    second = make(test)
    return first, second


def one_epoch(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()


def fit(model, optimizer, train, test):
    train_loader, test_loader = both(train, test)
    for epoch in range(9):
        one_epoch(model, optimizer, {drawn})
"""


def _program(shuffle: str, loaders: str, train: str, drawn: str = "train_loader") -> str:
    return MAKER.format(shuffle=shuffle, loaders=loaders) + USER.format(train=train, drawn=drawn)


@pytest.mark.parametrize(
    ("shuffle", "loaders", "train"),
    [
        ("shuffle", ONE, "shuffle=True"),
        ("shuffle", ONE, "'train', True"),
        ("shuffle", ALONE, "shuffle=True"),
        ("part == 'train'", ONE, "part='train'"),
        ("part != 'test'", ONE, "'train'"),
        ("(part == 'train')", IN_TRAINING, "'train'"),
        ("not (part == 'test')", ONE, "'train'"),
    ],
)
def test_the_call_says_that_it_shuffles(shuffle: str, loaders: str, train: str) -> None:
    code = _program(shuffle, loaders, train)
    assert len(findings(code, "DIST02")) == 1
    call = "train_loader.sampler.set_epoch(epoch)"
    assert call in fixed(code, "DIST02", unsafe=True)


@pytest.mark.parametrize(
    ("shuffle", "loaders", "train", "drawn"),
    [
        ("shuffle", ONE, "shuffle=False", "train_loader"),
        ("shuffle", ONE, "'train'", "train_loader"),  # the default
        ("shuffle", ONE, "shuffle=True", "test_loader"),
        ("shuffle", ONE, "shuffle=train.shuffles", "train_loader"),
        ("shuffle", ONE, "*train.options", "train_loader"),
        ("part == 'train'", ONE, "part='test'", "train_loader"),
        ("part == 'train'", ELSE, "part='train'", "train_loader"),
        ("part == train.name", ONE, "part='train'", "train_loader"),
    ],
)
def test_silent(shuffle: str, loaders: str, train: str, drawn: str) -> None:
    assert not findings(_program(shuffle, loaders, train, drawn), "DIST02")


def test_silent_where_somebody_sets_the_epoch() -> None:
    code = _program("shuffle", ONE, "shuffle=True")
    assert not findings(code.replace("    for x, y in", "    batches.sampler.set_epoch(3)\n    for x, y in"), "DIST02")


def test_a_loader_that_may_have_another_sampler_is_asked() -> None:
    loaders = "loader = DataLoader(data, 8, sampler=sampler) if data.large else DataLoader(data, 8)"
    after = fixed(_program("shuffle", loaders, "shuffle=True"), "DIST02", unsafe=True)
    assert "if isinstance(train_loader.sampler, DistributedSampler):" in after


@pytest.mark.parametrize(("train", "count"), [("'train', True", 1), ("'train'", 0)])
def test_the_call_of_another_file_says_so(tmp_path: Path, train: str, count: int) -> None:
    maker = MAKER.format(shuffle="shuffle", loaders=ONE)
    user = "from maker import make\n" + USER.format(train=train, drawn="train_loader")
    (tmp_path / "maker.py").write_text(maker)
    (tmp_path / "fit.py").write_text(user)
    source = Source.from_text(maker, tmp_path / "maker.py")
    assert len(lint(source, Settings.selecting("DIST02"), strict=True, project=Project())) == count


HELPED = """
from torch.utils.data import DataLoader, DistributedSampler


def chosen(data, shuffle):
    {returned}


def fit(model, optimizer, train, test, world):
    loader = DataLoader(train, 8, sampler=chosen(train, shuffle={train}))
    tests = DataLoader(test, 8, sampler=chosen(test, shuffle=False))
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        print(sum(model(x).sum() for x, y in tests))
"""
AT_ONCE = "return DistributedSampler(data, shuffle=shuffle)"
IF_ANY = "sampler = DistributedSampler(data, shuffle=shuffle) if data.parts > 1 else None\n    return sampler"


@pytest.mark.parametrize("returned", [AT_ONCE, IF_ANY])
@pytest.mark.parametrize(("train", "count"), [("True", 1), ("False", 0), ("world > 1", 0)])
def test_a_helper_is_told_whether_its_sampler_shuffles(returned: str, train: str, count: int) -> None:
    found = findings(HELPED.format(returned=returned, train=train), "DIST02")
    assert len(found) == count


def test_a_helper_that_always_shuffles_is_told_of_once() -> None:
    code = HELPED.format(returned="return DistributedSampler(data)", train="True").replace("chosen(test", "set(test")
    assert len(findings(code.replace(", shuffle=True", "").replace("data, shuffle)", "data)"), "DIST02")) == 1


SPLIT = """
from torch.utils.data import DataLoader, DistributedSampler


def sampler_of(data):
    return DistributedSampler(data)


def make(data, shuffle=True):
    return DataLoader(data, 8, sampler=sampler_of(data))
{more}
"""
FAR = """
from maker import make


def fit(model, optimizer, data):
    loader = make(data)
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
"""


STEPS = """
def one_epoch(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()


def measure(model, optimizer, batches):
    return sum(model(x).sum().item() for x, y in batches)
"""
THIRD = """
from maker import make
from steps import measure, one_epoch


def fit(model, optimizer, data):
    loader = make(data)
    for {header}:
        {does}(model, optimizer, loader)
"""


@pytest.mark.parametrize(
    ("header", "does", "told", "count"),
    [
        ("epoch in range(9)", "one_epoch", "", 1),
        ("_ in range(model.epochs)", "one_epoch", "", 1),
        ("epoch in range(9)", "measure", "", 0),
        ("fold in range(9)", "one_epoch", "", 0),
        ("epoch in range(9)", "one_epoch", "    batches.sampler.set_epoch(3)\n", 0),
    ],
)
def test_the_steps_are_in_a_third_file(tmp_path: Path, header: str, does: str, told: str, count: int) -> None:
    (tmp_path / "maker.py").write_text(SPLIT.format(more=""))
    (tmp_path / "steps.py").write_text(STEPS.replace("    for x", told + "    for x", 1))
    (tmp_path / "fit.py").write_text(THIRD.format(header=header, does=does))
    source = Source.from_text(SPLIT.format(more=""), tmp_path / "maker.py")
    assert len(lint(source, Settings.selecting("DIST02"), strict=True, project=Project())) == count


@pytest.mark.parametrize(("more", "count"), [("", 1), ("\n\ndef other(data):\n    return sampler_of(data)\n", 0)])
def test_a_helper_makes_the_sampler_of_what_is_made_for_another_file(tmp_path: Path, more: str, count: int) -> None:
    (tmp_path / "maker.py").write_text(SPLIT.format(more=more))
    (tmp_path / "fit.py").write_text(FAR)
    source = Source.from_text(SPLIT.format(more=more), tmp_path / "maker.py")
    assert len(lint(source, Settings.selecting("DIST02"), strict=True, project=Project())) == count
