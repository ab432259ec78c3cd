"""DATA02: what a trainer of a framework runs on says where its batches go."""

from __future__ import annotations

import pytest

from tests.support import findings


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ('accelerator = "cpu"\nif torch.cuda.is_available():\n    accelerator = "gpu"', 1),
        ('if torch.cuda.is_available():\n    accelerator = "gpu"\nelse:\n    accelerator = "cpu"', 1),
        ('accelerator = "gpu"\naccelerator = "cpu"', 0),
        ("import options\naccelerator = options.accelerator", 0),
        ('accelerator, devices = "gpu", 1', 1),
    ],
    ids=["in a branch", "in either branch", "before it is another", "out of sight", "together"],
)
def test_what_a_trainer_runs_on_may_be_chosen_before(chosen: str, found: int) -> None:
    code = f"""
import lightning as L
import torch
from systems import System
from torch.utils.data import DataLoader
from torchvision import datasets

loader = DataLoader(datasets.CIFAR10("data"), 64, num_workers=4)
{chosen}
L.Trainer(accelerator=accelerator).fit(System(), loader)
"""
    assert len(findings(code, "DATA02")) == found
