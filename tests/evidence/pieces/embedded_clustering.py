"""Clusters and the network that maps points to them, learned together."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision()
    model = load(checkout, "lib.dec").DEC(input_dim=12, z_dim=3, n_clusters=4, encodeLayer=[16], dropout=0.2)
    points, labels = torch.rand(60, 12), torch.randint(4, (60,))
    with inside(checkout) as printed:
        model.fit(points, lr=0.05, batch_size=16, num_epochs=4, tol=0.0)
        encoded = model.encodeBatch(DataLoader(TensorDataset(points, labels), batch_size=20), islabel=True)
    return {"printed": printed.getvalue(), "encoded": encoded, "model": model}


PIECE = Piece(
    repository="eelxpeng/dec-pytorch",
    commit="5ef10376f95f5d47fd34025b3dc0d7065a5d75bd",
    path="lib/dec.py",
    what="`DEC.fit` for four epochs and `encodeBatch`, on random points",
    run=run,
    lint="lib",
)
