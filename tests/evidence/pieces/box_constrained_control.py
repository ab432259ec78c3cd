"""Quadratic programs with bounds, solved by a projected Newton method, and derivatives by differences."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tests.evidence.driving import inside, load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    pnqp = load(checkout, "mpc.pnqp").pnqp
    factor = torch.randn(5, 4, 4, dtype=torch.float64)
    hessian = factor @ factor.mT + torch.eye(4, dtype=torch.float64)
    linear = torch.randn(5, 4, dtype=torch.float64)
    bound = 0.3 * torch.ones(5, 4, dtype=torch.float64)
    values: Values = {}
    with inside(checkout) as printed:
        values["solved"] = pnqp(hessian, linear, -bound, bound)
        values["from zero"] = pnqp(hessian, linear, -bound, bound, x_init=torch.zeros_like(linear))
        values["one"] = pnqp(hessian[:, :1, :1], linear[:, :1], -bound[:, :1], bound[:, :1])
        values["float"] = pnqp(hessian.float(), linear.float(), -bound.float(), bound.float())
        numdiff = load(checkout, "mpc.torch_numdiff")
        net = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1), nn.Flatten(0)).double()
        point = torch.randn(4, 3, dtype=torch.float64)
        values["derivatives"] = [numdiff.grad(net, point), numdiff.hess(net, point)]
    return {"printed": printed.getvalue(), **values}


PIECE = Piece(
    repository="locuslab/mpc.pytorch",
    commit="63732fa85ab2a151045493c4e67653210ca3d7ff",
    path="mpc/pnqp.py",
    what="`pnqp` on random programs, and the derivatives of `torch_numdiff`",
    run=run,
    lint="mpc",
)
