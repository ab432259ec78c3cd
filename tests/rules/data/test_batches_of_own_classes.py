"""DATA02: batches of classes of the program, which torch pins by their own method alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.data.unpinned_loaders import HEADER
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

PADDED = """\
import torch


class Padded:
    def __init__(self, rows):
        self.rows = rows

    def to(self, device):
        return Padded(self.rows.to(device))
{}

def collate(samples):
    return Padded(torch.stack(samples))
"""
NESTED = PADDED.replace(
    "return Padded(torch.stack(samples))", "samples[0] = padded(samples[0])\n    return tuple(samples)"
)
NESTED += "\n\ndef padded(rows):\n    rows = torch.stack(rows)\n    return Padded(rows)\n"
CALLED = """\
import torch
from images import padded


class Collate:
    def __init__(self, multiple):
        self.multiple = multiple

    def __call__(self, samples):
        x, y = zip(*samples)
        rows = padded(x, self.multiple)
        return rows, y
"""
PADDING = PADDED.partition("def collate")[0]
PADDING += "def padded(rows, multiple):\n    if multiple:\n        return Padded(rows)\n    return rows\n"
PINNED = "\n    def pin_memory(self):\n        return Padded(self.rows.pin_memory())\n"


@pytest.mark.parametrize("is_in_other_file", [True, False])
@pytest.mark.parametrize("method", [PINNED, ""])
@pytest.mark.parametrize("padding", [PADDED, NESTED])
def test_batches_of_an_own_class_are_pinned_by_its_own_method_alone(
    tmp_path: Path, padding: str, method: str, is_in_other_file: bool
) -> None:
    (tmp_path / "pyproject.toml").touch()
    made = padding.format(method)
    (tmp_path / "padding.py").write_text(made)
    loop = "from trainer import Trainer\nTrainer(model, device).fit(loader)\n"
    taken = "from padding import collate\n" if is_in_other_file else made
    main = HEADER + taken + "loader = DataLoader(images, 4, num_workers=4, collate_fn=collate)\n" + loop
    (tmp_path / "main.py").write_text(main)
    source = Source.read(tmp_path / "main.py")
    found = lint(source, Settings.selecting("DATA02"), strict=True, project=Project())
    assert bool(found) == bool(method)


@pytest.mark.parametrize(
    "collate", ["Collate(32)", "Collate(1) if test else Collate(32)", "list if test else Collate(4)"]
)
@pytest.mark.parametrize("method", [PINNED, ""])
def test_an_object_collates_batches_of_an_own_class(tmp_path: Path, collate: str, method: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "images.py").write_text(PADDING.format(method))
    (tmp_path / "collating.py").write_text(CALLED)
    loader = f"collate = {collate}\nloader = DataLoader(images, 4, num_workers=4, collate_fn=collate)\n"
    main = HEADER + "from collating import Collate\nfrom trainer import Trainer\n" + loader
    (tmp_path / "main.py").write_text(main + "Trainer(model, device).fit(loader)\n")
    source = Source.read(tmp_path / "main.py")
    found = lint(source, Settings.selecting("DATA02"), strict=True, project=Project())
    assert bool(found) == bool(method)
    (tmp_path / "images.py").write_text(PADDING.format(method).replace("return Padded(rows)", "return list(rows)"))
    assert lint(source, Settings.selecting("DATA02"), strict=True, project=Project())


@pytest.mark.parametrize(("beside", "count"), [("torch.tensor(y)", 1), ("list(y)", 0)])
def test_tensors_beside_an_own_object_are_pinned(tmp_path: Path, beside: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    made = PADDING.format("") + f"\ndef collate(samples):\n    x, y = zip(*samples)\n    return {beside}, Padded(x)\n\n"
    loop = "from trainer import Trainer\nTrainer(model, device).fit(loader)\n"
    main = HEADER + made + "loader = DataLoader(images, 4, num_workers=4, collate_fn=collate)\n" + loop
    (tmp_path / "main.py").write_text(main)
    source = Source.read(tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("DATA02"), strict=True, project=Project())) == count
