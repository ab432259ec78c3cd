"""SYNC03: tensors that are put on the device once, and copied back to the host by every step."""

from __future__ import annotations

import pytest

from tests.support import findings

PROGRAM = """
import torch
from somewhere import augment, model, queue, train_batch

device = torch.device("cuda")
labels, names = torch.load("labels.pt")
{put}


def train(loader, optimizer):
    model.train()
    for i, x in enumerate(loader):
        {read}
        loss = model(x.to(device)).mean()
        loss.backward()
        optimizer.step()
        {then}
"""
PUT = "labels = labels.to(device)"
READ = "queue.put(labels[i].long().cpu())"


def program(put: str = PUT, read: str = READ, then: str = "pass") -> str:
    return PROGRAM.format(put=put, read=read, then=then)


FOUND = {
    "a part": program(),
    "a part as a list": program(read="queue.put(labels[i].tolist())"),
    "all of it": program("mask = torch.ones(9).to(device)", "queue.put(mask.cpu())"),
    "under a condition of the program": program("mask = torch.ones(9)\nmask = mask.cuda()", "queue.put(mask.cpu())"),
    "functions of torch see it too": program(then="print(torch.sum(labels))"),
}
SILENT = {
    "it never goes to the device": program("pass"),
    "the step puts it there": program("pass", "labels = queue.get().to(device)\n        " + READ),
    "the step changes a part of it": program(then="labels[i] = 0"),
    "the step changes it in place": program(then="labels.add_(1)"),
    "a function may change it": program(then="augment(labels, i)"),
    "an optimizer changes it": program(PUT + "\nopt = torch.optim.SGD([labels], lr=0.1)"),
    "it is a leaf of graphs": program("mask = torch.ones(9, requires_grad=True).to(device)", "queue.put(mask.cpu())"),
    "it may be a network": program("net = names.to(device)", "queue.put(net.cpu())"),
    "at intervals": program(read="if i % 100 == 0: " + READ),
}


@pytest.mark.parametrize("code", FOUND.values(), ids=FOUND)
def test_what_no_step_changes_is_copied_once(code: str) -> None:
    [found] = findings(code, "SYNC03")
    assert "what no step changes" in found.message
    assert found.fix is None


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_what_a_step_may_change_or_copies_seldom_is_silent(code: str) -> None:
    assert findings(code, "SYNC03") == []
