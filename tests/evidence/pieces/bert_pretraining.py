"""BERT: masked words and following sentences."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import inside, load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    model = load(checkout, "bert_pytorch.model")
    bert = model.BERT(30, hidden=16, n_layers=1, attn_heads=2)
    batches = [
        {
            "bert_input": torch.randint(1, 30, (4, 10)),
            "segment_label": torch.randint(1, 3, (4, 10)),
            "is_next": torch.randint(1, 2, (4,)),
            "bert_label": torch.randint(30, (4, 10)),
        }
        for _ in range(6)
    ]
    with inside(checkout) as printed:
        trainer = load(checkout, "bert_pytorch.trainer").BERTTrainer(
            bert, 30, batches, batches[:2], warmup_steps=4, log_freq=2
        )
        for epoch in range(2):
            trainer.train(epoch)
            trainer.test(epoch)
    return {"printed": printed.getvalue(), "model": trainer.model}


PIECE = Piece(
    repository="codertimo/BERT-pytorch",
    commit="d10dc4f9d5a6f2ca74380f62039526eb7277c671",
    path="bert_pytorch/trainer/pretrain.py",
    what="`BERTTrainer.train` and `test` for two epochs on random sentences",
    run=run,
)
