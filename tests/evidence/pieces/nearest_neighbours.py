"""The weighted nearest neighbours by which DINO measures features."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision()
    module = load(checkout, "eval_knn")
    train, test = (torch.nn.functional.normalize(torch.randn(count, 32), dim=1) for count in (600, 330))
    labels = torch.randint(10, (600,)), torch.randint(10, (330,))
    return {
        str(k): module.knn_classifier(train, labels[0], test, labels[1], k, 0.07, num_classes=10) for k in (3, 10, 20)
    }


PIECE = Piece(
    repository="facebookresearch/dino",
    commit="7c446df5b9f45747937fb0d72314eb9f7b66930a",
    path="eval_knn.py",
    what="`knn_classifier` on random features",
    run=run,
    lint="eval_knn.py",
)
