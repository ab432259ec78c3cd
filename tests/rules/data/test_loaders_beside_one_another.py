"""DATA02, XFER02: loaders of one function are pinned together, or none is."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

PROGRAM = """\
import torch
from torch.utils.data import DataLoader
from torchvision import datasets
from helpers import Forever

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main(model):
    train_set = datasets.CIFAR10("data", train=True)
    test_set = datasets.CIFAR10("data", train=False)
    train_loader = DataLoader(train_set, batch_size=64, num_workers=4)
    test_loader = DataLoader(test_set, batch_size=64, num_workers=4)
    USE
    with torch.no_grad():
        for x, _ in test_loader:
            print(model(x.to(device)).sum())
"""


@pytest.mark.parametrize(
    ("use", "pinned"),
    [
        ("batches = Forever(train_loader)", 0),
        ("pass", 1),
        ("for x, _ in train_loader:\n        print(x.mean())", 1),
        ("for x, _ in train_loader:\n        print(model(x.to(device)).sum())", 2),
    ],
)
def test_one_that_goes_out_of_sight_keeps_the_others_as_they_are(use: str, pinned: int) -> None:
    code = PROGRAM.replace("USE", use)
    assert findings(code, "DATA02")
    assert fixed(code, "DATA02", "XFER02", unsafe=True).count("pin_memory") == pinned


COLLATED = """\
import torch
from torch.utils.data import DataLoader
from torchvision import datasets
from helpers import Collator, collated

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def stacked(samples):
    return torch.stack([x for x, _ in samples])


def main(model):
    images = datasets.CIFAR10("data", train=True)
    loader = DataLoader(images, batch_size=64, num_workers=4, collate_fn=COLLATE)
    with torch.no_grad():
        for x in loader:
            print(model(x.to(device)).sum())
"""


@pytest.mark.parametrize(("collate", "pinned"), [("stacked", 1), ("None", 1), ("Collator()", 0), ("collated", 0)])
def test_what_is_collated_out_of_sight_may_be_nothing_that_can_be_pinned(collate: str, pinned: int) -> None:
    code = COLLATED.replace("COLLATE", collate)
    assert findings(code, "DATA02")
    assert fixed(code, "DATA02", unsafe=True).count("pin_memory") == pinned


@pytest.mark.parametrize(("workers", "pinned"), [("4", 2), ("0", 0)])
def test_one_without_workers_is_pinned_beside_one_with_workers(workers: str, pinned: int) -> None:
    code = PROGRAM.replace("USE", "for x, _ in train_loader:\n        print(model(x.to(device)).sum())")
    code = code.replace("test_set, batch_size=64, num_workers=4", "test_set, batch_size=64")
    code = code.replace("num_workers=4", f"num_workers={workers}")
    assert len(findings(code, "DATA02")) == 2
    assert fixed(code, "DATA02", "XFER02", unsafe=True).count("pin_memory") == pinned


@pytest.mark.parametrize(("beside", "pinned"), [("", 2), ("loader = DataLoader(train_set, pin_memory=False)", 0)])
def test_none_is_pinned_where_pinning_is_turned_off_for_another(beside: str, pinned: int) -> None:
    use = "for x, _ in train_loader:\n        print(model(x.to(device)).sum())"
    code = PROGRAM.replace("USE", use) + f"\n\ndef load(train_set):\n    {beside or 'pass'}\n"
    assert fixed(code, "DATA02", "XFER02", unsafe=True).count("pin_memory=torch") == pinned


@pytest.mark.parametrize(("count", "is_fixed"), [(6, True), (7, False)])
def test_options_for_many_loaders_are_for_the_author_to_make(count: int, is_fixed: bool) -> None:
    loop = "for x, _ in part{}:\n        print(model(x.to(device)).sum())\n    "
    made = "part{} = DataLoader(train_set, batch_size=64)\n    "
    use = "".join(text.format(at) for text in (made, loop) for at in range(count)) + "pass"
    code = PROGRAM.replace("    train_loader = DataLoader(train_set, batch_size=64, num_workers=4)\n", "")
    code = code.replace("    test_loader = DataLoader(test_set, batch_size=64, num_workers=4)\n", "")
    code = code.partition("    with torch")[0].replace("USE", use)
    assert len(findings(code, "DATA01")) == count
    assert ("num_workers" in fixed(code, "DATA01", unsafe=True)) is is_fixed
