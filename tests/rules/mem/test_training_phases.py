"""MEM05: a function that trains in one branch and evaluates in the other."""

from __future__ import annotations

from tests.support import fixed

BRANCHES = """\
import torch
from torch import nn


class Trainer:
    def __init__(self, net: nn.Module, optimizer):
        self.net, self.optimizer = net.cuda(), optimizer

    def test(self, loader):
        return self.run(loader, train=False)

    def fit(self, loader):
        self.run(loader)

    def run(self, loader, train=True):
        data = enumerate(loader)
        if train:
            self.net.train()
            for i, x in data:
                loss = self.net.finetune(x.cuda()).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        else:
            self.net.eval()
            for i, x in data:
                out = self.net.finetune(x.cuda())
                print(out.argmax().item())
"""


def test_what_stands_in_the_other_branch_never_trains() -> None:
    switch = "                with torch.no_grad():\n                    out = self.net.finetune(x.cuda())\n"
    assert switch in fixed(BRANCHES, "MEM05", unsafe=True)
