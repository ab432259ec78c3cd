"""Transforms of pictures that are tensors already."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch


class Compose:
    def __init__(self, transforms: Sequence[Callable[[torch.Tensor], torch.Tensor]]):
        self.transforms = transforms

    def __call__(self, picture: torch.Tensor) -> torch.Tensor:
        for transform in self.transforms:
            picture = transform(picture)
        return picture


class ToTensor:
    def __call__(self, picture: torch.Tensor) -> torch.Tensor:
        return picture


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float]):
        self.mean, self.std = (torch.tensor(values).view(-1, 1, 1) for values in (mean, std))

    def __call__(self, picture: torch.Tensor) -> torch.Tensor:
        return (picture - self.mean) / self.std
