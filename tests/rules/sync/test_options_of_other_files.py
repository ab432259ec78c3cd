"""What a loss shows where its callers, all of them in other files, ask for it."""

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
