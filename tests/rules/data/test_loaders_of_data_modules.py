"""DATA02: loaders that a data module of Lightning makes for the trainer of another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

DATA = """\
import lightning as L
from torch.utils.data import DataLoader
from torchvision import datasets

class Photos(L.LightningDataModule):
    def setup(self, stage=None):
        self.photos = datasets.CIFAR10("photos")

    def train_dataloader(self):
        return DataLoader(self.photos, 64, num_workers=4{pinned})
"""
TRAINING = """\
import lightning as L
from data import Photos
from task import Task

L.Trainer(max_epochs=9, accelerator="{accelerator}").fit(Task(), Photos())
"""


@pytest.mark.parametrize(
    ("accelerator", "pinned", "count"),
    [("gpu", "", 1), ("auto", "", 1), ("cpu", "", 0), ("gpu", ", pin_memory=True", 0)],
)
def test_the_trainer_of_another_file_says_where_its_batches_go(
    tmp_path: Path, accelerator: str, pinned: str, count: int
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "data.py").write_text(DATA.format(pinned=pinned))
    (tmp_path / "train.py").write_text(TRAINING.format(accelerator=accelerator))
    source = Source.read(tmp_path / "data.py")
    assert len(lint(source, Settings.selecting("DATA02"), strict=True, project=Project())) == count


@pytest.mark.parametrize(("name", "count"), [("train.py", 1), ("test_data.py", 0)])
def test_a_test_of_a_data_module_does_not_say_where_its_batches_go(tmp_path: Path, name: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "data.py").write_text(DATA.format(pinned=""))
    trained = "def test_fit():\n    " + TRAINING.format(accelerator="auto").strip().replace("\n", "\n    ")
    (tmp_path / name).write_text(trained + "\n    assert Photos\n")
    source = Source.read(tmp_path / "data.py")
    assert len(lint(source, Settings.selecting("DATA02"), strict=True, project=Project())) == count
