"""A Wasserstein GAN with clipped weights."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("torchvision.utils", make_grid=lambda pictures, **options: pictures)
    wgan = load(checkout / "training", "wgan")
    logged = io.StringIO()
    wgan.logger.addHandler(logging.StreamHandler(logged))
    wgan.logger.setLevel(logging.INFO)
    generator = nn.Sequential(nn.ConvTranspose2d(5, 4, 4), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 3, 5))
    critic = nn.Sequential(nn.Conv2d(3, 4, 5), nn.LeakyReLU(0.2), nn.Conv2d(4, 1, 4))
    optimizers = [torch.optim.RMSprop(network.parameters(), lr=1e-3) for network in (generator, critic)]
    loader = DataLoader(TensorDataset(torch.rand(40, 3, 8, 8)), batch_size=8, shuffle=True)
    with inside(checkout):
        losses = wgan.train_wgan(
            loader, generator, critic, *optimizers, num_epochs=2, device=torch.device("cpu"), nz=5, n_critic=2
        )
    return {"losses": losses, "generator": generator, "critic": critic, "logged": logged.getvalue()}


PIECE = Piece(
    repository="vltkv/Generate-faces-with-GAN",
    commit="c886e7fff56ae128354f9d09b583547a47f35807",
    path="training/wgan.py",
    what="`train_wgan` for two epochs on random pictures",
    run=run,
    lint="training",
)
