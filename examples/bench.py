"""What `torchlint bench` is given: the classifier of image_classifier.py with its data and its loss."""

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
