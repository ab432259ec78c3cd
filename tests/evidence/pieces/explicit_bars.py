"""Coordinates of pixels, and what a series of polynomials or waves draws at them."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load, stand_in, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision()
    stand_in("tensorboardX")
    utils = load(checkout, "utils")
    values: Values = {}
    for mode in ("poly", "fourier"):
        x = torch.rand(2, 3, 5, 1, requires_grad=True)
        coordinates = utils.make_coords_x(x, 6, mode)
        coordinates.square().sum().backward()
        weights = torch.randn((4, 7) if mode == "poly" else (7,), requires_grad=True)
        points = torch.linspace(0, 4, 9).reshape((1, 9) if mode == "poly" else (9, 1))
        drawn = utils.get_voxels(weights, points, mode)
        drawn.sum().backward()
        none = utils.make_coords_x(x.detach(), 0, mode)
        values[mode] = [coordinates, x.grad, drawn, weights.grad, none]
    return values


PIECE = Piece(
    repository="Calvin-Pang/NExpR",
    commit="9bae2fdcd84ff742838455c0dc1d2e52d7cb91d4",
    path="utils.py",
    what="`make_coords_x` and `get_voxels` in both modes, with their gradients",
    run=run,
)
