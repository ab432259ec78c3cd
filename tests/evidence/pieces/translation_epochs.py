"""A Transformer for translation: epochs of training and evaluation."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch

from tests.evidence.driving import load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("dill")
    stand_in("torchtext.data")
    stand_in("torchtext.datasets")
    train = load(checkout, "train")
    model = load(checkout, "transformer.Models").Transformer(
        30, 30, 0, 0, d_word_vec=16, d_model=16, d_inner=32, n_layers=2, n_head=2, d_k=8, d_v=8
    )
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-09)
    optimizer = load(checkout, "transformer.Optim").ScheduledOptim(adam, 2.0, 16, 10)
    options = Namespace(src_pad_idx=0, trg_pad_idx=0)
    batches = [Namespace(src=torch.randint(1, 30, (7, 4)), trg=torch.randint(1, 30, (8, 4))) for _ in range(6)]
    cpu = torch.device("cpu")
    epochs = []
    for smoothing in (True, False):
        epochs.append(train.train_epoch(model, batches, optimizer, options, cpu, smoothing))
        epochs.append(train.eval_epoch(model, batches, cpu, options))
    return {"epochs": epochs, "model": model}


PIECE = Piece(
    repository="jadore801120/attention-is-all-you-need-pytorch",
    commit="132907dd272e2cc92e3c10e6c4e783a87ff8893d",
    path="train.py",
    what="`train_epoch` and `eval_epoch`, twice, on random sentences",
    run=run,
)
