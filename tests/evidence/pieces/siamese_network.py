"""Two pictures of the same digit or not."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import Pictures, inside, load, torchvision
from tests.evidence.piece import Piece, Values


class Pairs(nn.Module):
    """Small, as the model of the piece works on pictures of one size only."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 1)

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.layer(torch.cat([first, second], 1)))


def run(checkout: Path) -> Values:
    torchvision(MNIST=Pictures)
    module = load(checkout / "siamese_network", "main")
    model = Pairs()
    pairs = TensorDataset(torch.rand(40, 6), torch.rand(40, 6), torch.randint(2, (40,)).float())
    loader = DataLoader(pairs, batch_size=8)
    optimizer = torch.optim.Adadelta(model.parameters())
    with inside(checkout) as printed:
        for epoch in (1, 2):
            options = Namespace(log_interval=1, dry_run=False)
            module.train(options, model, torch.device("cpu"), loader, optimizer, epoch)
            module.test(model, torch.device("cpu"), loader)
    return {"printed": printed.getvalue(), "model": model}


PIECE = Piece(
    repository="pytorch/examples",
    commit="77f55b912142e11fcfdf5b530231fb9c52f181e8",
    path="siamese_network/main.py",
    what="`train` and `test` for two epochs on random pairs",
    run=run,
    lint="siamese_network",
)
