"""DATA03 keeps no workers that would not see what the epochs change, nor what workers change in copies of their own."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.support import findings

TRAINING = """
import torch
from torch.utils.data import DataLoader, Dataset

class Settings:
    scale, rate = 1, 0.1

SETTINGS = Settings()

class Samples(Dataset):
    def __init__(self, files, other):
        self.files, self.other = files, other
        self.images = [torch.load(file) for file in files]

    def __getitem__(self, i):
        {item}

    def __len__(self):
        return len(self.files)

def train(files, others, net, opt):
    net = net.cuda()
    loader = DataLoader(Samples(files, {other}), batch_size=8, num_workers=2)
    for epoch in range(10):
        {change}
        for x in loader:
            opt.zero_grad()
            net(x.cuda()).mean().backward()
            opt.step()
"""
READ = "return torch.load(self.files[i]) * SETTINGS.scale"


@pytest.mark.parametrize(
    ("change", "other", "count"),
    [
        ("SETTINGS.scale = epoch", "1", 0),
        ("SETTINGS.rate = epoch", "1", 1),
        ("pass", "net", 0),
        ("others.append(epoch)", "others", 0),
        ("print(others.count(epoch))", "others", 1),
        ("files.pop()", "others", 0),
    ],
)
def test_what_the_epochs_change(change: str, other: str, count: int) -> None:
    code = TRAINING.format(item=READ, change=change, other=other)
    assert len(findings(code, "DATA03")) == count


@pytest.mark.parametrize(
    ("item", "is_fixed"),
    [
        ("image = self.images[i]; image += 0.1; return image", False),
        ("image = self.images[i]; image.clamp_(0, 1); return image", False),
        ("image = self.images[i].clone(); image += 0.1; return image", True),
        ("image = self.images[i]; image = image + 0.1; return image", True),
    ],
)
def test_what_the_workers_change(item: str, is_fixed: bool) -> None:
    code = TRAINING.format(item=item, change="pass", other="1")
    (finding,) = findings(code, "DATA03")
    assert (finding.fix is not None) is is_fixed
    read = code.replace(", num_workers=2", "").replace("self.images[i]", "torch.load(self.files[i])")
    assert all(each.fix is not None for each in findings(dedent(read), "DATA01"))
    held = code.replace(", num_workers=2", "").replace("return image", "return image, torch.load(self.files[i])")
    (finding,) = findings(dedent(held).replace("for x in", "for x, _ in"), "DATA01")
    assert (finding.fix is not None) is is_fixed
