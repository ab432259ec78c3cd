"""SYNC03: what a network, or a function, copies back to the host although its caller had it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

NETWORK = """\
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 8)
        self.rnn = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embed(x), {lengths}, batch_first=True, enforce_sorted=False)
        return self.rnn(packed)[1][0][0]
"""
TRAINING = """\
from torch.utils.data import DataLoader


def train(dataset):
    device = torch.device("cuda")
    loader = DataLoader(dataset, batch_size=8)
    net = Tagger().to(device)
    optimizer = torch.optim.Adam(net.parameters())
    for x, lengths, y in loader:
        {moves}
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x, {given}), y)
        loss.backward()
        optimizer.step()
{more}"""
ALL = "x, lengths, y = x.to(device), lengths.to(device), y.to(device)"
SOME = "x, y = x.to(device), y.to(device)"
AGAIN = """

def check(x):
    net = Tagger().cuda()
    return net(x.cuda(), torch.tensor([3, 2], device="cuda"))
"""
CASES = {
    "a copy": ("lengths.cpu()", ALL, "lengths", "", 1),
    "a list": ("lengths.tolist()", ALL, "lengths", "", 1),
    "moved for the call": ("lengths.cpu()", SOME, "lengths.to(device)", "", 1),
    "left on the host": ("lengths.cpu()", SOME, "lengths", "", 0),
    "made on the device": ("lengths.cpu()", SOME, "(x > 0).sum(1)", "", 0),
    "moved on by an amount": ("lengths.cpu()", ALL, "lengths + y", "", 0),
    "given as it is": ("lengths", ALL, "lengths", "", 0),
    "made on the device by another caller": ("lengths.cpu()", ALL, "lengths", AGAIN, 0),
}


@pytest.mark.parametrize(("read", "moves", "given", "more", "count"), CASES.values(), ids=CASES)
def test_lengths_that_come_back_in_forward(read: str, moves: str, given: str, more: str, count: int) -> None:
    code = NETWORK.format(lengths=read) + "\n\n" + TRAINING.format(moves=moves, given=given, more=more)
    assert len(findings(code, "SYNC03")) == count


@pytest.mark.parametrize(("moves", "count"), [(ALL, 1), (SOME, 0)])
def test_lengths_that_another_file_has_moved(tmp_path: Path, moves: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "network.py").write_text(NETWORK.format(lengths="lengths.cpu()"))
    training = "import torch\nfrom torch import nn\nfrom network import Tagger\n"
    (tmp_path / "main.py").write_text(training + TRAINING.format(moves=moves, given="lengths", more=""))
    source = Source.read(tmp_path / "network.py")
    found = lint(source, Settings.selecting("SYNC03"), strict=True, project=Project())
    assert len(found) == count
    assert all("the caller has copied to the device by `lengths.to(device)`" in finding.message for finding in found)
