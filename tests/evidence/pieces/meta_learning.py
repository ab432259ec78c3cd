"""Model-agnostic meta-learning: meta steps, fine-tuning, and gradients put to zero."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch
from torch import nn

from tests.evidence.driving import load
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    layers = [
        ("conv2d", [4, 1, 3, 3, 1, 0]),
        ("relu", [True]),
        ("bn", [4]),
        ("flatten", []),
        ("linear", [5, 4 * 6 * 6]),
    ]
    options = Namespace(
        update_lr=0.1,
        meta_lr=1e-3,
        n_way=5,
        k_spt=1,
        k_qry=3,
        task_num=2,
        update_step=3,
        update_step_test=3,
        imgc=1,
        imgsz=8,
    )
    meta = load(checkout, "meta").Meta(options, layers)
    support, query = torch.rand(2, 5, 1, 8, 8), torch.rand(2, 15, 1, 8, 8)
    targets = torch.arange(5).repeat(2, 1), torch.arange(5).repeat(2, 3)
    accuracies = [meta(support, targets[0], query, targets[1]) for _ in range(2)]
    accuracies.append(meta.finetunning(support[0], targets[0][0], query[0], targets[1][0]))
    for _ in range(2):
        meta.net.zero_grad()
        nn.functional.cross_entropy(meta.net(support[0]), targets[0][0]).backward()
    return {"accuracies": accuracies, "meta": meta, "gradients": [weight.grad for weight in meta.net.parameters()]}


PIECE = Piece(
    repository="dragen1860/MAML-Pytorch",
    commit="98a00d41724c133bd29619a2fb2cc46dd128a368",
    path="learner.py",
    what="`Meta.forward` twice, `finetunning`, and `Learner.zero_grad` between two backward passes",
    run=run,
)
