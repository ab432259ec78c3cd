"""What `torchlint bench` is given: the classifier of image_classifier.py with its data and its loss.

And what `torchlint verify-function` compares with a function of mimo_channel.py.
"""

from __future__ import annotations

import torch
from image_classifier import CLASSES, ConvNet, Shapes
from torch import nn
from torch.utils.data import DataLoader


def loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


def training(batch_size: int = 64):
    """The model, where its batches come from, and the loss of a batch."""
    pin = torch.cuda.is_available()
    loader = DataLoader(Shapes(2048, seed=1), batch_size=batch_size, shuffle=True, pin_memory=pin)
    return ConvNet(len(CLASSES)), loader, loss


def quantise(y: torch.Tensor, step: float, levels: int) -> torch.Tensor:
    """The converter of mimo_channel.py without its loop, as somebody might write it for `torchlint verify-function`."""
    parts = torch.view_as_real(y)
    return torch.view_as_complex(torch.clamp(torch.round(parts / step), -levels, levels) * step)
