"""Pictures of skin, classified without the weights that the repository learns."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

from tests.evidence.driving import inside, load, stand_in, torchvision
from tests.evidence.piece import Piece, Values


class Skin(Dataset[tuple[torch.Tensor, int]]):
    """Random pictures, in the place of the data set of the piece."""

    def __init__(self, folder: str, noise_fraction: float, mode: str) -> None:
        count = 24 if mode == "base" else 10
        self.pictures = torch.rand(count, 3, 8, 8)
        self.labels = torch.randint(9, (count,))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, position: int) -> tuple[torch.Tensor, int]:
        return self.pictures[position], int(self.labels[position])


def network(**options: object) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 9))


def run(checkout: Path) -> Values:
    torchvision()
    stand_in("torchvision.models", resnet101=network)
    for name in ("IPython", "skimage.io", "datasets_base", "tensorboardX"):
        stand_in(name)
    nothing: Any = lambda self, *where, **options: self  # noqa: E731
    torch.Tensor.cuda = nn.Module.cuda = nothing  # the piece calls it also where there is no GPU
    baseline = load(checkout, "baseline")
    written: list[tuple[object, ...]] = []
    writer = SimpleNamespace(add_scalar=lambda *row: written.append(row))
    loader = torch.utils.data.DataLoader
    vars(baseline).update(
        BasicDataset=Skin,
        SummaryWriter=lambda comment: writer,
        DataLoader=lambda data, batch_size, shuffle, **options: loader(data, batch_size, shuffle),
    )
    with inside(checkout) as printed:
        (checkout / "models").mkdir(exist_ok=True)
        net = baseline.train_net(0.2, "fig", batch_size=8, epochs=2)
    return {"printed": printed.getvalue(), "net": net, "written": written}


PIECE = Piece(
    repository="Cute77/learning-to-reweight-examples",
    commit="e40241e69c233c2c18276cb0559ab75b0bd5af8e",
    path="baseline.py",
    what="`train_net` for two epochs on random pictures, on the CPU",
    run=run,
)
