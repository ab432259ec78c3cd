"""MEM01 and MEM02: what a function computes of tensors without a graph has none, whatever training gives the same
function, and what a network computes whose `forward` switches autograd off."""

from __future__ import annotations

import pytest

from tests.support import findings

PREFERENCES = """
import torch
from torch import nn

def log_probs(logits, ids, mask):
    taken = torch.gather(logits.log_softmax(-1), dim=2, index=ids.unsqueeze(2)).squeeze(2)
    {inside}
    return (taken * mask).sum(-1)

scale = nn.Parameter(torch.ones(()))

def main(model: nn.Module, reference: nn.Module, loader, eval_loader, optimizer, beta):
    def evaluation(model, eval_loader):
        model.eval()
        losses = 0
        for step, batch in enumerate(eval_loader):
            ids, mask = batch["ids"].cuda(), batch["mask"].cuda()
            with {switch}:
                outputs = model(ids)
                others = reference(ids)
            ours = log_probs(outputs.logits, ids, mask)
            theirs = log_probs(others.logits, ids, mask)
            logits = beta * ((ours[:8] - theirs[:8]) - (ours[8:] - theirs[8:]))
            loss = (-nn.functional.logsigmoid(logits) * (1 - 0.1) - nn.functional.logsigmoid(-logits) * 0.1).mean(0)
            losses += loss.float()
        return losses / (step + 1)

    for batch in loader:
        ids, mask = batch["ids"].cuda(), batch["mask"].cuda()
        outputs = model(ids)
        loss = -log_probs(outputs.logits, ids, mask).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(evaluation(model, eval_loader))
"""


@pytest.mark.parametrize(
    ("switch", "inside", "count"),
    [
        ("torch.no_grad()", "pass", 0),
        ("torch.autocast('cuda')", "pass", 1),
        ("torch.no_grad()", "taken = taken * scale", 1),
    ],
)
def test_what_is_given_decides(switch: str, inside: str, count: int) -> None:
    assert len(findings(PREFERENCES.format(switch=switch, inside=inside), "MEM02")) == count


MEASURE = """
import torch
from torch import nn

class Accuracy(nn.Module):
    {decorator}
    def forward(self, logits, labels):
        return (logits.softmax(1) * nn.functional.one_hot(labels, 10)).sum(1).mean()

def train(model: nn.Module, loader, optimizer):
    criterion, accuracy, seen = nn.CrossEntropyLoss(), Accuracy(), []
    for x, y in loader:
        logits = model(x.cuda())
        loss = criterion(logits, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(accuracy(logits, y.cuda()))
    return seen
"""


@pytest.mark.parametrize(
    ("decorator", "count"), [("@torch.no_grad()", 0), ("@torch.inference_mode()", 0), ("@torch.enable_grad()", 1)]
)
def test_a_network_whose_forward_switches_autograd_off_gives_no_graph(decorator: str, count: int) -> None:
    assert len(findings(MEASURE.format(decorator=decorator), "MEM01")) == count


MANY = """
import torch
from torch import nn

def perturbed(model: nn.Module, rows, total):
    kept = []
    for i in range(8):
        {taken} = model(rows + 0.1 * torch.randn_like(rows))
        kept.append({part})
        {after}
    return torch.tensor(sum(kept) / len(kept)), total
"""


@pytest.mark.parametrize(
    ("taken", "part", "after", "count"),
    [
        ("hits, step, spent, *_", "spent", "", 0),
        ("hits, step, spent, *_", "hits[step]", "", 0),
        ("hits, step, spent, *_", "spent", "print(spent.size())", 1),
        ("hits, step, spent, *_", "spent.mean()", "", 1),
        ("hits, spent", "spent", "", 1),
        ("spent", "spent", "", 1),
    ],
    ids=["of many", "a place of one of many", "with a size", "with a mean", "of two", "alone"],
)
def test_one_of_many_results_of_a_network_out_of_sight_may_be_a_number(
    taken: str, part: str, after: str, count: int
) -> None:
    assert len(findings(MANY.format(taken=taken, part=part, after=after), "MEM01")) == count
