"""MEM05: a loss goes to the parameter that it fills, however the method that sends it backward is called."""

from __future__ import annotations

import pytest

from tests.support import findings

TRAINER = """
import functools
import torch
from torch import nn

class Base:
    @staticmethod
    def static(opt, loss, model=None):
        opt.zero_grad()
        loss.backward()
        opt.step()

    @classmethod
    def of_class(cls, opt, loss, model=None):
        opt.zero_grad()
        loss.backward()
        opt.step()

    def method(self, opt, loss, model=None):
        opt.zero_grad()
        loss.backward()
        opt.step()

    @staticmethod
    def shown(opt, loss, model=None):
        print(opt, loss)

class Trainer(Base):
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
        self.finish = functools.partial({partial})

    def train(self, data):
        for x in data:
            loss = self.net(x).mean()
            {step}
            print(loss.item())
"""


@pytest.mark.parametrize(
    "step",
    [
        "self.static(self.opt, loss, self.net)",
        "Base.static(self.opt, loss, self.net)",
        "self.of_class(self.opt, loss, self.net)",
        "Base.of_class(self.opt, loss, self.net)",
        "self.method(self.opt, loss, self.net)",
        "Base.method(self, self.opt, loss, self.net)",
    ],
)
def test_a_step_that_is_called_as_a_method_sends_backward_what_it_is_given(step: str) -> None:
    assert findings(TRAINER.format(step=step, partial="print"), "MEM05") == []


@pytest.mark.parametrize(
    "partial",
    ["Base.static, self.opt", "self.static, self.opt", "self.method, self.opt", "Base.method, self, self.opt"],
)
def test_a_step_that_a_partial_has_given_its_optimizer(partial: str) -> None:
    assert findings(TRAINER.format(step="self.finish(loss)", partial=partial), "MEM05") == []


def test_a_static_method_that_only_shows_the_loss_wants_no_graph() -> None:
    step = "self.shown(self.opt, loss, self.net)"
    assert len(findings(TRAINER.format(step=step, partial="print"), "MEM05")) == 1
