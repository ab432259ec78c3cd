"""SYNC01 and SYNC06: a sum is kept on the device where it is in all loops that say it in the same words, or in none."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

LOOPS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

net, criterion = nn.Linear(4, 1).cuda(), nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), 0.1)


def train(data):
    total = 0.0
    for x, y in DataLoader(data):
        loss = criterion(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(data)


def validate(data, losses):
    total = 0.0
    for x, y in DataLoader(data):
        loss = criterion(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        LINE
    return total / len(data)
"""


@pytest.mark.parametrize(
    ("line", "is_kept_there"),
    [
        ("total += loss.item()", True),
        ("total += loss.item()\n        print(loss.item())", False),
        ("loss = losses.pop()\n        total += loss.item()", False),
        ("total += float(loss)\n        print(loss.item())", True),
        ("total += loss.item() * len(x)\n        print(loss.item())", True),
        ("total = total + loss.item()\n        print(loss.item())", True),
        ("losses.append(loss.item())", True),
    ],
)
def test_the_like_of_another_loop_goes_along_or_both_stay(line: str, is_kept_there: bool) -> None:
    code = LOOPS.replace("LINE", line)
    head = fixed(code, "SYNC01", unsafe=True).partition("def validate")[0]
    assert ("total += loss.detach().double()" in head) is is_kept_there


def test_a_list_is_as_well_kept_everywhere_or_nowhere() -> None:
    code = LOOPS.replace("total = 0.0", "kept = []").replace("total += loss.item()", "kept.append(loss.item())")
    code = code.replace("total / len(data)", "sum(kept)")
    both = code.replace("LINE", "kept.append(loss.item())")
    assert fixed(both, "SYNC01", unsafe=True).count("kept.append(loss.detach())") == 2
    one = code.replace("LINE", "kept.append(loss.item())\n        print(loss.item())")
    assert fixed(one, "SYNC01", unsafe=True) == one
    shown = [found.fix for found in findings(one, "SYNC01") if found.fix is not None]
    assert any("has another like it that would stay as it is" in fix.why for fix in shown)


def test_what_stands_beside_a_sum_that_stays_would_save_nothing() -> None:
    counted = LOOPS.replace("total = 0.0\n    for", "total, hits = 0.0, 0\n    for", 1).replace(
        "total += loss.item()\n    return total / len(data)",
        "total += loss.item()\n        hits += (net(x.cuda()) > 0).sum().item()\n    return total, hits",
        1,
    )
    kept = counted.replace("LINE", "total += loss.item()\n        print(loss.item())")
    assert fixed(kept, "SYNC01", "SYNC06", unsafe=True) == kept
    both = fixed(counted.replace("LINE", "total += loss.item()"), "SYNC01", "SYNC06", unsafe=True)
    assert ".item()" not in both
