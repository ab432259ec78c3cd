"""One training step of a subject, the same for every tool."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .errors import ToolError
from .subject import Loss, failing, find

MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


def optimizer_maker(name: str, learning_rate: float) -> MakeOptimizer:
    """`name`: a class of torch.optim, or package.module:callable, which is given the parameters alone."""
    if ":" in name:
        own = find(name)
        return lambda parameters: own(parameters)
    kind: Any = getattr(torch.optim, name, None)
    if not isinstance(kind, type) or not issubclass(kind, torch.optim.Optimizer) or kind is torch.optim.Optimizer:
        raise ToolError(f"torch.optim has no {name}: name one of its classes, or package.module:callable")
    make: Any = kind  # the base class does not say that its subclasses take a learning rate
    return lambda parameters: make(parameters, lr=learning_rate)


@dataclass
class Trainer:
    """A model with its optimizer. `autocast`: the dtype to compute in, None for the model's own."""

    model: nn.Module
    loss: Loss
    optimizer: torch.optim.Optimizer
    device: torch.device
    autocast: torch.dtype | None = None

    def __post_init__(self) -> None:
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.autocast is torch.float16)

    def forward(self, batch: Any) -> torch.Tensor:
        context = torch.autocast(self.device.type, self.autocast) if self.autocast else nullcontext()
        with failing("the loss cannot be computed"), context:
            loss = self.loss(self.model, batch)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            shown = f"shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise ToolError(f"the loss must be a tensor of one number, not {shown}")
        return loss

    def backward(self, loss: torch.Tensor) -> None:
        with failing("the backward pass fails"):
            self.scaler.scale(loss).backward()

    def update(self) -> None:
        with failing("the optimizer step fails"):
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()

    def step(self, batch: Any) -> torch.Tensor:
        """Forward, backward, optimizer step; gradients are dropped at the end. Returns the detached loss."""
        loss = self.forward(batch)
        self.backward(loss)
        self.update()
        return loss.detach()


def trainer(
    model: nn.Module, loss: Loss, make: MakeOptimizer, device: torch.device, autocast: torch.dtype | None = None
) -> Trainer:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        raise ToolError("the model has no parameter to train")
    with failing("the optimizer cannot be made"):
        optimizer = make(parameters)
    model.train()
    return Trainer(model, loss, optimizer, device, autocast)
