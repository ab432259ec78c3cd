"""DATA01 and DATA02 leave loaders alone that are only tried out, beside what others use."""

from __future__ import annotations

import pytest

from tests.support import findings

FILE = """\
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.tensor(list(Image.open(self.paths[index]).getdata())), index

{around}
    loader = DataLoader(Photos(["a.png"]), batch_size=4)
    net = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    seen = []
    step = 0
{loop}
"""
GUARD = 'if __name__ == "__main__":'
SHOWN = """\
    for x, y in loader:
        x = x.cuda()
        step += 1
        print(x.shape, net(x).mean(), y)
"""
ENDS = """\
    for x, y in loader:
        seen.append(net(x.cuda()))
        break
"""
TRAINED = """\
    for x, y in loader:
        loss = net(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        print(loss)
"""
KEPT = "    for x, y in loader:\n        seen.append(net(x.cuda()))\n        print(len(seen))\n"
ADDED = "    total = 0\n    for x, y in loader:\n        total += net(x.cuda()).sum()\n    print(total)\n"
HANDED = "    for x, y in loader:\n        print(fit(x.cuda()))\n"


@pytest.mark.parametrize("around", [GUARD, "def test_photos():", "def debug():"])
@pytest.mark.parametrize("loop", [SHOWN, ENDS], ids=["shown", "ends with the first batch"])
def test_a_loader_that_is_only_tried_out(around: str, loop: str) -> None:
    assert findings(FILE.format(around=around, loop=loop), "DATA01", "DATA02") == []


@pytest.mark.parametrize(
    "loop",
    [TRAINED, KEPT, ADDED, HANDED, SHOWN + TRAINED, "    for epoch in range(9):\n" + SHOWN.replace("    ", "        ")],
    ids=["trained", "kept", "added up", "handed on", "shown, then trained", "again and again"],
)
def test_a_loader_that_something_comes_of(loop: str) -> None:
    found = findings(FILE.format(around=GUARD, loop=loop), "DATA01", "DATA02")
    assert [finding.code for finding in found] == ["DATA01", "DATA02"]


def test_a_script_without_anything_for_others_is_no_trial() -> None:
    """What it shows is what it is run for."""
    assert len(findings(FILE.format(around="def main():", loop=SHOWN), "DATA02")) == 1
