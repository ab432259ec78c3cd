"""XFER02: batches of loaders out of sight may be objects whose `to` takes a device and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

LOADERS = """
from torch.utils.data import DataLoader
from collators import Plain, Denoising

def get_loader(args, dataset, tokenizer):
    if args.plain:
        collate_fn = Plain(tokenizer)
    else:
        collate_fn = Denoising(tokenizer)
    return DataLoader(dataset, collate_fn=collate_fn, batch_size=8, pin_memory=True, num_workers=4)
"""
TRAINER = """
import torch
from torch import nn
import loaders

def cycle(loader):
    while True:
        for data in loader:
            yield data

class Trainer:
    def __init__(self, args, dataset, tokenizer):
        self.net = nn.Linear(4, 4).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loader = loaders.get_loader(args, dataset, tokenizer)
        self.batches = cycle(self.loader)

    def train(self):
        for step in range(99):
            data = next(self.batches).to("cuda")
            loss = self.net({data}).sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize(("data", "is_shown"), [("data['input_ids']", True), ("data", False)])
def test_a_batch_with_entries_of_a_loader_out_of_sight_may_be_an_object(
    tmp_path: Path, data: str, is_shown: bool
) -> None:
    (tmp_path / "loaders.py").write_text(LOADERS)
    (tmp_path / "trainer.py").write_text(TRAINER.replace("{data}", data))
    source = Source.read(tmp_path / "trainer.py")
    [found] = lint(source, Settings.selecting("XFER02"), strict=True, project=Project())
    assert found.fix is not None
    assert found.fix.applicability is (Applicability.DISPLAY if is_shown else Applicability.UNSAFE)
