"""Functions that compute a loss and that nobody in sight calls: whoever trains calls them once per step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

PARTS = """
import torch
from torch import nn

class Slots(nn.Module):
    def __init__(self, encoder, device):
        super().__init__()
        self.encoder, self.device = encoder, device
        self.head = nn.Linear(8, 4)

    def calc_part(self, x, y):
        out = self.head(self.encoder(x))
        target = y.to(self.device)
        loss = nn.CrossEntropyLoss()(out, target)
        hits = (out.argmax(1) == target).float().mean().item()
        return loss, hits

    def calc_loss(self, x, y):
        loss, hits = self.calc_part(x, y)
        self.log("hits", hits)
        {end}

    def log(self, name, number):
        print(name, number)
"""


def lines_of(code: str) -> list[int]:
    return [finding.line for finding in findings(code, "SYNC01")]


def test_what_a_loss_reads_is_read_in_every_step_though_no_caller_is_in_sight() -> None:
    assert lines_of(PARTS.format(end="return 2 * loss")) == [14]


@pytest.mark.parametrize(
    "end",
    ["return loss.item()", "return None", "return loss.detach()", "return hits"],
    ids=["a number", "nothing", "no graph", "a measure"],
)
def test_what_returns_no_loss_to_go_back_through_may_run_once(end: str) -> None:
    assert lines_of(PARTS.format(end=end)) == []


def test_a_loss_of_the_file_that_is_called_once_is_no_step() -> None:
    code = PARTS.format(end="return loss") + "\n\nprint(Slots(nn.Linear(2, 8).cuda(), 'cuda').calc_loss(x, y))\n"
    assert lines_of(code) == []


def test_a_test_of_a_loss_is_no_step() -> None:
    code = PARTS.format(end="return loss").replace("calc_loss", "test_loss")
    assert lines_of(code) == []


MEASURED = """
import torch
import torch.nn.functional as F
from torch import nn

{head}
    loss = F.mse_loss(out, y.cuda())
    print("loss", loss.item())
    return loss

def fit(net, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        net(x.cuda()).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("head", "count"),
    [
        ("def of(net, x, y):\n    out = net(x.cuda())", 1),
        ("def of(out, y):\n    out = out.cuda()", 0),  # a distance, of a report perhaps
        ("def of(net):\n    x, y = next(iter(LOADER))\n    out = net(x.cuda())", 0),
        ("def of(width, x, y):\n    net = nn.Linear(width, 3).cuda()\n    out = net(x.cuda())", 0),
        ("def of(trial, x, y):\n    net = build(trial).cuda()\n    out = net(x.cuda())", 0),
        ("def of(net, x, y):\n    fit(net, x, None)\n    out = net(x.cuda())", 0),
        ("NET = nn.Linear(3, 3)\n\ndef of(x, y):\n    net = NET.cuda()\n    out = net(x.cuda())", 1),
        ("def of(net, x, y):\n    shrink = nn.Tanh().cuda()\n    out = shrink(net(x.cuda()))", 1),
    ],
    ids=[
        "a loss",
        "of no network",
        "of the first batch",
        "of a new network",
        "of a trial",
        "after training",
        "of the network that is moved",
        "a function",
    ],
)
def test_only_a_loss_of_a_network_and_data_that_are_given_is_one_of_many(head: str, count: int) -> None:
    code = MEASURED.format(head=head)
    assert len(lines_of(code)) == count


@pytest.mark.parametrize(
    ("caller", "lines"),
    [
        ("", [6]),
        ("from losses import distance\nfrom nets import net\nprint(distance(net, torch.ones(1), 2))\n", []),
    ],
)
def test_a_loss_that_another_file_calls_once_is_no_step(tmp_path: Path, caller: str, lines: list[int]) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text("import torch\n" + caller)
    (tmp_path / "losses.py").write_text(
        "import torch\nimport torch.nn.functional as F\n\ndef distance(model, x, y):\n"
        "    loss = F.mse_loss(model(x.cuda()), y.cuda())\n    print('loss', loss.item())\n    return loss\n"
    )
    settings = Settings.selecting("SYNC01")
    found = lint(Source.read(tmp_path / "losses.py"), settings, strict=True, project=Project())
    assert [finding.line for finding in found] == lines


MARGIN = """
import torch
from torch import nn

device = "cuda"


class Margin(nn.Module):
    def forward(self, out, target):
        gaps = (out - target).abs()
        far = gaps[gaps > 0.5]
        parts = [far, torch.ones(3)]
        loss = far.mean()
        return loss, {number}
"""


@pytest.mark.parametrize(
    ("number", "count"),
    [
        ("loss.item()", 1),
        ("(gaps > 1).sum().item()", 1),
        ("parts[0].sum().item()", 0),  # what lies in a list may be anywhere
        ("torch.ones(3).mean().item()", 0),
        ("target.shape[0]", 0),
    ],
)
def test_a_number_that_a_loss_returns_of_what_it_has_computed(number: str, count: int) -> None:
    assert len(lines_of(MARGIN.format(number=number))) == count
