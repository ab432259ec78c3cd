"""The evaluation of a learner of many tasks, with the classes that it takes for others."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.evidence.driving import inside, load, stand_in
from tests.evidence.piece import Piece, Values


class Small(nn.Module):
    """Six classes of small pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(48, 16)
        self.linear = nn.Linear(16, 6)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.linear(torch.relu(self.hidden(pictures.flatten(1))))
        return logits


def run(checkout: Path) -> Values:
    stand_in("kornia")
    base: Any = load(checkout, "agents.base")
    learner_class = type("Learner", (base.ContinualLearner,), {"train_learner": lambda self, x, y: None})
    tricks = dict.fromkeys(("ncm_trick", "kd_trick", "labels_trick", "separated_softmax", "review_trick"), False)
    options = Namespace(data="random", cuda=False, epoch=1, batch=8, verbose=False, agent="ER", trick=tricks)
    options.error_analysis = True
    model = Small()
    learner = learner_class(model, torch.optim.SGD(model.parameters(), lr=0.1), options)
    tasks = [(torch.rand(20, 3, 4, 4), torch.randint(2 * task, 2 * task + 2, (20,))) for task in range(3)]
    loaders = [DataLoader(TensorDataset(*task), batch_size=8) for task in tasks]
    accuracies = []
    with inside(checkout) as printed:
        for x, y in tasks[:2]:
            learner.before_train(x, y)
            for _ in range(5):
                loss = learner.criterion(learner(x), y)
                learner.opt.zero_grad()
                loss.backward()
                learner.opt.step()
            learner.after_train()
            accuracies.append(learner.evaluate(loaders))
    errors = [learner.error_list, learner.new_class_score, learner.old_class_score]
    return {"printed": printed.getvalue(), "accuracies": accuracies, "errors": errors, "model": model}


PIECE = Piece(
    repository="RaptorMai/online-continual-learning",
    commit="6175ca034e56435acd82b8f17ff59f920f0bc45e",
    path="agents/base.py",
    what="`ContinualLearner.evaluate` after two tasks of random pictures",
    run=run,
    lint="agents",
)
