"""Fine-tuning of a masked autoencoder: accumulated gradients, mixed precision that is off on the CPU, meters."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("torch._six", inf=float("inf"))
    stand_in("timm.data")
    stand_in("timm.utils", accuracy=lambda output, target, topk: [(output.argmax(1) == target).float().mean()] * 2)
    torch.cuda.synchronize = lambda device=None: None  # the piece calls it also where there is no GPU
    engine = load(checkout, "engine_finetune")
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16), nn.ReLU(), nn.Linear(16, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = load(checkout, "util.misc").NativeScalerWithGradNormCount()
    loader = DataLoader(TensorDataset(torch.rand(48, 3, 8, 8), torch.randint(10, (48,))), batch_size=8, shuffle=True)
    options = Namespace(accum_iter=2, warmup_epochs=1, epochs=2, lr=1e-3, min_lr=0.0)
    cpu = torch.device("cpu")
    epochs = []
    with inside(checkout):
        for epoch in range(2):
            epochs.append(
                engine.train_one_epoch(
                    model, nn.CrossEntropyLoss(), loader, optimizer, cpu, epoch, scaler, max_norm=1.0, args=options
                )
            )
            epochs.append(engine.evaluate(loader, model, cpu))
    return {"epochs": epochs, "model": model, "optimizer": optimizer}


PIECE = Piece(
    repository="facebookresearch/mae",
    commit="efb2a8062c206524e35e47d04501ed4f544c0ae8",
    path="engine_finetune.py",
    what="`train_one_epoch` with two batches per step, and `evaluate`, twice, on random pictures",
    run=run,
)
