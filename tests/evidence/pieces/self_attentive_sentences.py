"""Sentences classified by an LSTM with several attentions."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("keras")
    train = load(checkout, "attention.train")
    model = load(checkout, "attention.model").StructuredSelfAttention(8, 10, 6, 3, 12, emb_dim=7, vocab_size=40)
    words, labels = torch.randint(1, 40, (32, 12)), torch.randint(2, (32,)).double()
    loader = DataLoader(TensorDataset(words, labels), batch_size=8, shuffle=True)
    optimizer = torch.optim.RMSprop(model.parameters())
    with inside(checkout) as printed:
        trained = train.train(model, loader, torch.nn.BCELoss(), optimizer, 3, True, 0.03, clip=False)
        accuracy = train.evaluate(model, words[:20].numpy(), labels[:20].numpy())
        weights = train.get_activation_wts(model, words[:5])
    values = {"trained": trained, "accuracy": accuracy, "weights": weights, "model": model}
    return {"printed": printed.getvalue(), **values}


PIECE = Piece(
    repository="kaushalshetty/Structured-Self-Attention",
    commit="84ed64f9cee75f84a5d871a46508a308182e4a6d",
    path="attention/train.py",
    what="`train` for three epochs, `evaluate` and `get_activation_wts`, on random sentences",
    run=run,
)
