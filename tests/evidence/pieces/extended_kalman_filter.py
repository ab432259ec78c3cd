"""A batched extended Kalman filter on the Lorenz attractor."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import torch

from tests.evidence.driving import load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    lorenz = load(checkout, "Simulations.Lorenz_Atractor.parameters")
    system = SimpleNamespace(
        f=lorenz.f, h=lorenz.h, m=3, n=3, Q=0.01 * torch.eye(3), R=0.1 * torch.eye(3), T=12, T_test=12
    )
    kalman = load(checkout, "Filters.EKF").ExtendedKalmanFilter(system, Namespace(use_cuda=False))
    kalman.Init_batched_sequence(torch.ones(5, 3, 1), torch.eye(3).repeat(5, 1, 1))
    kalman.GenerateBatch(torch.randn(5, 3, 12))
    return {"x": kalman.x, "sigma": kalman.sigma, "gain": kalman.KG_array}


PIECE = Piece(
    repository="KalmanNet/KalmanNet_TSP",
    commit="828a2cf529bc84f43b37d543d916fe5858054457",
    path="Filters/EKF.py",
    what="`ExtendedKalmanFilter.GenerateBatch` over 12 steps of 5 random sequences",
    run=run,
)
