"""What a function shows where its callers, some of them in other files, ask for it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

LOSS = """
    import torch
    from torch import nn

    class Distance(nn.Module):
        def forward(self, out, target, {option}):
            total = torch.mean((out - target) ** 2) + torch.mean(torch.abs(out - target))
            if flag:
                print("total: %.2f" % total)
            return total
"""
TRAINING = """
    import torch
    from losses import Distance

    def train(net: torch.nn.Module, loaders, optimizer, options):
        criterion = Distance()
        for mode in ["train", "test"]:
            first = True
            for x, y in torch.utils.data.DataLoader(loaders[mode]):
                x, y = x.cuda(), y.cuda()
                if mode == "train":
                    optimizer.zero_grad()
                    loss = criterion(net(x), y{trained})
                    loss.backward()
                    optimizer.step()
                else:
                    with torch.no_grad():
                        loss = criterion(net(x), y{tested})
                {end}

    train(torch.nn.Linear(2, 2).cuda(), {{}}, None, {{}})
"""


def count(path: Path, trained: str, tested: str, end: str, option: str) -> int:
    (path / "pyproject.toml").touch()
    (path / "main.py").write_text(dedent(TRAINING.format(trained=trained, tested=tested, end=end)))
    (path / "losses.py").write_text(dedent(LOSS.format(option=option)))
    settings = Settings.selecting("SYNC04")
    return len(lint(Source.read(path / "losses.py"), settings, strict=True, project=Project()))


@pytest.mark.parametrize(
    ("trained", "tested", "end", "option"),
    [
        ("", "", "first = False", "flag=False"),
        ("", ", False", "first = False", "flag=False"),
        ("", ", first", "first = False", "flag=False"),
        (", flag=first", ", flag=first", "first = False", "flag=False"),
    ],
    ids=["left out", "switched off", "in the first round of the test", "in the first round of each"],
)
def test_what_a_loss_shows_in_a_first_round_or_never_is_no_part_of_a_step(
    tmp_path: Path, trained: str, tested: str, end: str, option: str
) -> None:
    assert count(tmp_path, trained, tested, end, option) == 0


@pytest.mark.parametrize(
    ("trained", "tested", "end", "option"),
    [
        (", True", "", "first = False", "flag=False"),
        ("", "", "first = False", "flag=True"),
        ("", ", first", "first = loss < 1", "flag=False"),
        ("", ", first", "if options: first = False", "flag=False"),
        ("", ", mode == 'test'", "first = False", "flag=False"),
        (", *options", "", "first = False", "flag=False"),
        (", **options", "", "first = False", "flag=False"),
    ],
    ids=["asked for", "shown unless not", "a variable", "perhaps", "a comparison", "a list", "a dict"],
)
def test_what_a_loss_may_show_in_every_round_is_part_of_a_step(
    tmp_path: Path, trained: str, tested: str, end: str, option: str
) -> None:
    assert count(tmp_path, trained, tested, end, option) == 1


EPOCH = """
    import torch

    def epoch(net: torch.nn.Module, loader, optimizer, flag=False):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            if flag:
                print("loss: %.2f" % loss)

    {own}
"""
EPOCHS = """
    import torch
    from losses import epoch

    def train(net: torch.nn.Module, loader, optimizer, options):
        first = True
        for number in range(9):
            epoch(net, loader, optimizer{given})
            first = False

    train(torch.nn.Linear(2, 2).cuda(), [], None, {{}})
"""


@pytest.mark.parametrize(
    ("own", "given", "count"),
    [
        ("", "", 0),
        ("", ", flag=False", 0),
        ("", ", first", 0),
        ("def one(net, loader, optimizer): epoch(net, loader, optimizer)", "", 0),
        ("", ", True", 1),
        ("", ", options['flag']", 1),
        ("def one(net, loader, optimizer): epoch(net, loader, optimizer, True)", "", 1),
        ("def one(net, loader, optimizer): return (epoch, net, loader)", "", 1),
    ],
)
def test_what_an_epoch_shows_only_where_a_call_asks_for_it(tmp_path: Path, own: str, given: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text(dedent(EPOCHS.format(given=given)))
    (tmp_path / "losses.py").write_text(dedent(EPOCH.format(own=own)))
    found = lint(Source.read(tmp_path / "losses.py"), Settings.selecting("SYNC04"), strict=True, project=Project())
    assert len(found) == count
