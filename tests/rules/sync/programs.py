"""Loops for the tests of the SYNC rules: a body in a training loop, in an evaluation loop, and programs that run."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

HEAD = """
import math
import sys
import time

import numpy as np
import torch
import wandb
from sklearn.metrics import accuracy_score
from torch import nn
from torch.nn import functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


"""
TORCH_ONLY = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


"""


def training(body: str, before: str = "", after: str = "", head: str = HEAD) -> str:
    """A training loop. `loss` is backpropagated before `body` runs; `out`, `x` and `y` are on the device."""
    lines = """
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
    """
    return _function("train(model, loader, optimizer)", lines, body, before, after, head)


def evaluation(body: str, before: str = "", after: str = "", head: str = HEAD) -> str:
    """An evaluation loop. `out`, `loss`, `x` and `y` are on the device."""
    lines = """
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = criterion(out, y)
    """
    return _function("evaluate(model, loader)", lines, body, before, after, head, "@torch.no_grad()\n")


def _function(name: str, loop: str, body: str, before: str, after: str, head: str, decorator: str = "") -> str:
    parts = [
        "    criterion = nn.CrossEntropyLoss()\n",
        indent(dedent(before).strip() + "\n", "    ") if before else "",
        indent(dedent(loop).strip() + "\n", "    "),
        indent(dedent(body).strip() + "\n", "        "),
        indent(dedent(after).strip() + "\n", "    ") if after else "",
    ]
    return f"{head.lstrip()}{decorator}def {name}:\n" + "".join(parts)


def line_of(code: str, text: str) -> int:
    """1-based line of the only line that holds `text`."""
    found = [number for number, line in enumerate(code.splitlines(), 1) if text in line]
    assert len(found) == 1, found
    return found[0]


def result_of(code: str, function: str, batches: int) -> Any:
    """What a function of `code` returns for a small model on the CPU and a loader of so many batches."""
    import torch

    torch.default_generator.manual_seed(0)  # that of all devices takes longer than most programs
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    loader = [(torch.randn(4 + i, 5), torch.randint(3, (4 + i,))) for i in range(batches)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    space: dict[str, Any] = {}
    exec(compile(code, function, "exec"), space)
    arguments = (model, loader, optimizer) if function == "train" else (model, loader)
    return space[function](*arguments)
