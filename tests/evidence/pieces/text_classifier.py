"""A convolutional network over words: training with early stopping, and evaluation."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch

from tests.evidence.driving import inside, load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    train = load(checkout, "train")
    options = Namespace(
        embed_num=50,
        embed_dim=12,
        class_num=3,
        kernel_num=4,
        kernel_sizes=[2, 3],
        dropout=0.5,
        static=False,
        cuda=False,
        optimizer="adam",
        lr=0.01,
        epochs=3,
        max_norm=3.0,
        log_interval=2,
        test_interval=3,
        save_interval=100,
        save_best=False,
        early_stop=1000,
    )
    model = load(checkout, "model").CNN_Text(options)
    batches = [(torch.randint(50, (8, 9)), torch.randint(3, (8,))) for _ in range(6)]
    with inside(checkout) as printed:
        best = train.train(batches, batches[:2], model, options)
        accuracy = train.eval(batches, model, options)
    return {"best": best, "accuracy": accuracy, "model": model, "printed": printed.getvalue()}


PIECE = Piece(
    repository="Shawn1993/cnn-text-classification-pytorch",
    commit="93415f08168a1ae60635320569f6eca0ae3a40bb",
    path="train.py",
    what="`train` for three epochs and `eval`, on random texts",
    run=run,
)
