"""The training loop of DeiT: mixed precision that is off on the CPU, meters."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, stand_in
from tests.evidence.piece import Piece, Values


def criterion(samples: torch.Tensor, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(outputs, targets)


def step(loss: torch.Tensor, optimizer: torch.optim.Optimizer, **options: object) -> None:
    """What the scaler of timm does where there is nothing to scale."""
    loss.backward()
    optimizer.step()


def run(checkout: Path) -> Values:
    stand_in("timm.data")
    stand_in("timm.utils", accuracy=lambda output, target, topk: [(output.argmax(1) == target).float().mean()] * 2)
    torch.cuda.synchronize = lambda device=None: None  # the piece calls it also where there is no GPU
    engine = load(checkout, "engine")
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16), nn.ReLU(), nn.Linear(16, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pictures, labels = torch.rand(48, 3, 8, 8), torch.randint(10, (48,))
    hot = nn.functional.one_hot(labels, 10).float()
    cpu = torch.device("cpu")
    epochs = []
    with inside(checkout):
        for cosub in (False, True):
            loader = DataLoader(TensorDataset(pictures, hot), batch_size=8, shuffle=True)
            options = Namespace(cosub=cosub, bce_loss=False)
            epochs.append(engine.train_one_epoch(model, criterion, loader, optimizer, cpu, 0, step, args=options))
        epochs.append(engine.evaluate(DataLoader(TensorDataset(pictures, labels), batch_size=8), model, cpu))
    return {"epochs": epochs, "model": model, "optimizer": optimizer}


PIECE = Piece(
    repository="facebookresearch/deit",
    commit="7e160fe43f0252d17191b71cbb5826254114ea5b",
    path="engine.py",
    what="`train_one_epoch`, plain and with two views, and `evaluate`, on random pictures",
    run=run,
)
