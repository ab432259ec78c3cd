"""Models of small programs, and what they believe of the variables."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import libcst as cst

from torchlint.semantics.entities import Binding, Call, Function
from torchlint.semantics.model import Model
from torchlint.semantics.values import Value
from torchlint.source import Source

TRAINING_LOOP = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader as DL

    net = nn.Linear(3, 1).to("cuda")
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    crit = nn.MSELoss()
    loader = DL(dataset, batch_size=4)
    for epoch in range(3):
        for i, (x, y) in enumerate(loader):
            x, y = x.to("cuda"), y.to("cuda")
            out = net(x)
            loss = crit(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            value = loss.item()
        with torch.no_grad():
            for x, y in loader:
                guess = net(x.cuda())
                hits = (guess.argmax(1) == y.cuda()).sum()
"""


def model_of(code: str) -> Model:
    source = Source.from_text(dedent(code).lstrip("\n"), Path("module.py"))
    return Model.build(source, cst.parse_module(source.text))


def value_of(model: Model, name: str, function: str = "") -> Value:
    """Value of a variable after its last write."""
    return model.value(binding_of(model, name, function).writes[-1].target)


def binding_of(model: Model, name: str, function: str = "") -> Binding:
    return function_of(model, function).scope.bindings[name]


def function_of(model: Model, qualname: str) -> Function:
    return next(function for function in model.functions if function.qualname == qualname)


def call_on(model: Model, text: str) -> Call:
    """The call that is written like this."""
    return next(call for call in model.calls if model.code(call.node) == text)
