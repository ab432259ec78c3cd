"""The training and evaluation loops of a classifier, with what it writes to TensorBoard."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, stand_in, torchvision, without_times
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision()
    stand_in("torch.utils.tensorboard")
    train = load(checkout, "train")
    written: list[tuple[object, ...]] = []
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 100))
    data = TensorDataset(torch.rand(60, 3, 8, 8), torch.randint(100, (60,)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    vars(train).update(
        net=net,
        args=Namespace(gpu=False, b=16, warm=1),
        loss_function=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        warmup_scheduler=load(checkout, "utils").WarmUpLR(optimizer, 4),
        cifar100_training_loader=DataLoader(data, batch_size=16, shuffle=True),
        cifar100_test_loader=DataLoader(data, batch_size=25),
        writer=SimpleNamespace(add_scalar=lambda *row: written.append(row), add_histogram=lambda *row: None),
    )
    accuracies = []
    with inside(checkout) as printed:
        for epoch in (1, 2):
            train.train(epoch)
            accuracies.append(train.eval_training(epoch))
    return {"printed": without_times(printed.getvalue()), "net": net, "accuracies": accuracies, "written": written}


PIECE = Piece(
    repository="weiaicunzai/pytorch-cifar100",
    commit="11d8418f415b261e4ae3cb1ffe20d06ec95b98e4",
    path="train.py",
    what="`train` and `eval_training` for two epochs on random pictures",
    run=run,
    lint="train.py",
)
