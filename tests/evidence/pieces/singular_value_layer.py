"""Training and testing of a network with layers that multiply singular vectors."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, stand_in, without_times
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("termcolor", cprint=lambda text, **options: print(text))
    tools = load(checkout / "svd_layer", "tools")
    data = TensorDataset(torch.rand(48, 1, 8, 8), torch.randint(10, (48,)))
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    cpu = torch.device("cpu")
    with inside(checkout) as printed:
        for _ in range(2):
            tools.train(model, cpu, DataLoader(data, batch_size=8, shuffle=True), optimizer)
            tools.test(model, cpu, DataLoader(data, batch_size=20))
    return {"printed": without_times(printed.getvalue()), "model": model, "optimizer": optimizer}


PIECE = Piece(
    repository="collodi/ml_svd",
    commit="67a608ca10d3d37bf861e4e7490e62d298fa83b9",
    path="svd_layer/tools.py",
    what="`train` and `test` for two epochs on random pictures",
    run=run,
)
