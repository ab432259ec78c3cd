"""Data sets of random pictures."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.data import Dataset

Transform = Callable[[torch.Tensor], torch.Tensor]


class MNIST(Dataset[tuple[torch.Tensor, int]]):
    """Pictures of shape (1, 28, 28) with one of ten labels, the same at every start."""

    def __init__(self, root: str, train: bool = True, transform: Transform | None = None, download: bool = False):
        count = 960 if train else 320
        generator = torch.Generator().manual_seed(count)
        self.data = torch.rand(count, 1, 28, 28, generator=generator)
        self.targets = torch.randint(10, (count,), generator=generator)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, position: int) -> tuple[torch.Tensor, int]:
        picture = self.data[position]
        return (self.transform(picture) if self.transform else picture), int(self.targets[position])
