"""Point clouds laid over each other, by rigid motions and their derivatives."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("six")
    ptlk = load(checkout, "ptlk")
    values: Values = {}
    for dtype in (torch.float32, torch.float64):
        twists = torch.randn(5, 6, dtype=dtype, requires_grad=True)
        motions = ptlk.se3.exp(0.5 * twists)
        ptlk.se3.log(motions).square().sum().backward()
        turned = ptlk.so3.RodriguesRotation(twists.detach()[:, :3])
        matrices = turned @ turned.mT + torch.eye(3, dtype=dtype)
        inverse = ptlk.invmat.batch_inverse(matrices)
        trace = ptlk.so3.btrace(matrices)
        jacobian = ptlk.so3.vecs_Xg_ig(twists.detach()[:, :3])
        values[str(dtype)] = [motions.detach(), twists.grad, turned, jacobian, inverse, trace]
    network = ptlk.pointlk.PointLK(ptlk.pointnet.PointNet_features(dim_k=16), delta=0.05, learn_delta=True)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    clouds = torch.rand(3, 20, 3)
    shifted = ptlk.se3.transform(ptlk.se3.exp(0.1 * torch.randn(3, 6)).unsqueeze(1), clouds)
    for _ in range(3):
        residual = network(clouds, shifted, maxiter=4)
        loss = ptlk.pointlk.PointLK.comp(network.g, torch.eye(4).expand(3, 4, 4)) + network.rsq(residual)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {**values, "loss": loss, "motion": network.g, "network": network}


PIECE = Piece(
    repository="hmgoforth/PointNetLK",
    commit="fab02ef0fcd48cb7838c50a61b4d183a80eab65b",
    path="ptlk/so3.py",
    what="the functions of both groups with their gradients, and three steps of `PointLK`, on random clouds",
    run=run,
    lint="ptlk",
)
