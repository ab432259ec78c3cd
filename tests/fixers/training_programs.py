"""Training programs made at random of what people write in them, which run on the CPU in a few milliseconds.

The fixers are tested one by one with programs of their own. Here their rewrites meet: several numbers are summed, kept,
shown and compared in the same steps, by a script, by functions or by a trainer, and in many spellings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.fixers.training_helpers import DEFINITIONS, HELPED
from tests.fixers.training_idioms import IDIOMS, Idiom, indented

HEADER = """\
import io
import json
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 3)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.second(self.dropout(torch.relu(self.first(x))))


def samples(count, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=generator)
    return TensorDataset(x, x[:, :3].argmax(dim=1))


def show(*what):
    print(*what)


def shrink(tensor):
    tensor.data.mul_(0.5)

"""


def program(seed: int) -> str:
    """The text of one program. It prints all that it has measured, and its parameters, as exactly as Python does."""
    rng = Random(seed)
    idioms = [make(rng, name) for name, make in _some(rng)]
    for idiom in idioms:
        if rng.random() < 0.15:
            idiom.start, idiom.epoch = idiom.start + idiom.epoch, []
    shape = rng.choice([_script, _functions, _trainer])
    return HEADER + DEFINITIONS + shape(rng, idioms)


def _some(rng: Random) -> list[tuple[str, Callable[[Random, str], Idiom]]]:
    makers = rng.choices(IDIOMS + HELPED, k=rng.choice([1, 1, 2, 2, 3, 4]))
    names = rng.sample(_NAMES, len(makers))
    return list(zip(names, makers))


_NAMES = ["total", "running", "meter", "epoch_loss", "score", "value", "acc", "metric", "stat", "loss_sum"]


# -- whole programs


def _step(rng: Random, idioms: Sequence[Idiom]) -> list[str]:
    zero = rng.choice(["@optimizer.zero_grad()", "@optimizer.zero_grad(set_to_none=False)", "@model.zero_grad()"])
    moved = rng.choice(
        [
            ["x, y = x.to(device), y.to(device)"],
            ["x = x.to(device)", "y = y.to(device)"],
            ["x, y = x.to(device, non_blocking=True), y.to(device)"],
        ]
    )
    backward = rng.choice(["loss.backward()", "loss.backward()", "loss.backward(retain_graph=True)"])
    update = ["@optimizer.step()"]
    kept = [*moved, *([zero] if rng.random() < 0.7 else []), "out = @model(x)", "loss = @criterion(out, y)"]
    if zero not in kept:
        backward = f"{zero}\n{backward}"
    kept.append("pred = out.argmax(dim=1)" if rng.random() < 0.7 else "_, pred = torch.max(out.data, 1)")
    early = [idiom for idiom in idioms if rng.random() < 0.3 and not any("p.grad" in line for line in idiom.step)]
    late = [idiom for idiom in idioms if idiom not in early]
    if rng.random() < 0.1:
        kept.append(rng.choice(["if i == 1:\n    continue", "if len(x) < 4:\n    break"]))
    for idiom in early:
        kept += idiom.step
    kept += backward.split("\n")
    between = [idiom for idiom in late if rng.random() < 0.3]
    for idiom in between:
        kept += idiom.step
    kept += update
    for idiom in late:
        if idiom not in between:
            kept += idiom.step
    return [line for part in kept for line in part.split("\n")]


def _loop(rng: Random, idioms: Sequence[Idiom], start: bool = True) -> list[str]:
    header = rng.choice(["for i, (x, y) in enumerate(loader):"] * 3 + ["for i, batch in enumerate(loader):"])
    first = ["x, y = batch"] if "batch" in header else []
    lines = [line for idiom in idioms for line in idiom.start] if start else []
    lines += ["for epoch in range(2):"]
    inner = ["@model.train()"] + [line for idiom in idioms for line in idiom.epoch]
    inner += [header, *indented(first + _step(rng, idioms))]
    inner += [line for idiom in idioms for line in idiom.epoch_end]
    lines += indented(inner)
    return lines + [line for idiom in idioms for line in idiom.end]


_SETTINGS = [
    "torch.manual_seed(3)",
    "loader = DataLoader(samples(22, 1), batch_size=5, shuffle=False)",
    "test_loader = DataLoader(samples(9, 2), batch_size=4)",
]
_NETWORK = [
    "@model = Net({dropout}).to(device)",
    "@optimizer = torch.optim.{optimizer}(@model.parameters(), lr=0.1)",
    "@criterion = nn.CrossEntropyLoss()",
    "@rows, @best = [], 0",
]
_END = ["print(@rows, @best)", "print([p.double().sum().item() for p in @model.parameters()])"]


def _network(rng: Random) -> list[str]:
    choice = {"dropout": rng.choice(["", "0.5"]), "optimizer": rng.choice(["SGD", "Adam"])}
    return [line.format(**choice) for line in _NETWORK]


def _script(rng: Random, idioms: Sequence[Idiom]) -> str:
    return _text(_SETTINGS + _network(rng) + _loop(rng, idioms) + _END)


def _functions(rng: Random, idioms: Sequence[Idiom]) -> str:
    body = _loop(rng, idioms)
    lines = [
        "def train(@model, loader, test_loader, @optimizer, @criterion):",
        *indented(["@rows, @best = [], 0", *body, "return @rows, @best"]),
        "",
        "",
        "def main():",
        *indented(
            [
                *_SETTINGS,
                *_network(rng)[:-1],
                "@rows, @best = train(@model, loader, test_loader, @optimizer, @criterion)",
                *_END,
            ]
        ),
        "",
        "",
        'if __name__ == "__main__":',
        "    main()",
    ]
    return _text(lines)


def _trainer(rng: Random, idioms: Sequence[Idiom]) -> str:
    starts = [line for idiom in idioms for line in idiom.start]
    lines = [
        "class Trainer:",
        "    def __init__(self, loader, test_loader):",
        *indented(indented(["self.loader = loader", "self.test_loader = test_loader", *_network(rng), *starts])),
        "",
        "    def train(self):",
        *indented(indented(["loader, test_loader = self.loader, self.test_loader", *_loop(rng, idioms, False), *_END])),
        "",
        "",
        *_SETTINGS,
        "Trainer(loader, test_loader).train()",
    ]
    return _text(lines, "self.")


def _text(lines: Sequence[str], owner: str = "") -> str:
    return "\n".join(lines).replace(" @ ", "\0").replace("@", owner).replace("\0", " @ ") + "\n"
