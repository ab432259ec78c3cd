"""SimCLR: pairs of views, mixed precision that is off on the CPU."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from tests.evidence.driving import inside, load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    written: list[tuple[object, ...]] = []
    writer = SimpleNamespace(
        log_dir=str(checkout), add_scalar=lambda name, value, global_step: written.append((name, value, global_step))
    )
    stand_in("torch.utils.tensorboard", SummaryWriter=lambda: writer)
    module = load(checkout, "simclr")
    options = Namespace(
        device="cpu",
        batch_size=6,
        n_views=2,
        temperature=0.07,
        fp16_precision=False,
        disable_cuda=True,
        epochs=3,
        log_every_n_steps=1,
        arch="small",
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16), nn.ReLU(), nn.Linear(16, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    views = [([torch.rand(6, 3, 8, 8), torch.rand(6, 3, 8, 8)], torch.zeros(6)) for _ in range(4)]
    with inside(checkout):
        module.SimCLR(model=model, optimizer=optimizer, scheduler=scheduler, args=options).train(views)
    return {"model": model, "optimizer": optimizer, "written": written}


PIECE = Piece(
    repository="sthalles/SimCLR",
    commit="1848fc934ad844ae630e6c452300433fe99acfd9",
    path="simclr.py",
    what="`SimCLR.train` for three epochs on random pictures",
    run=run,
    lint="simclr.py",
)
