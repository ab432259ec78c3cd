"""SYNC01: the loss of a test is what the training makes in the same way and goes back through."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings, fixed

CODE = """\
import torch


def train(loader, model, criterion, optimizer):
    model.cuda()
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss, output = criterion(model, x.cuda(), y.cuda())
        loss.backward()
        optimizer.step()


def evaluate(loader, model, criterion):
    model.cuda()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            loss, output = criterion(model, x.cuda(), y.cuda())
            total += loss.item() * len(x)
    return total
"""


def evaluated(code: str) -> float:
    space: dict[str, object] = {}
    exec(code.replace(".cuda()", ".cpu()"), space)
    torch.manual_seed(4)
    model = torch.nn.Linear(5, 3)
    batches = [(torch.randn(4, 5), torch.randn(4, 3)) for _ in range(6)]

    def criterion(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        output = model(x)
        return (output - y).square().mean(), output

    total = space["evaluate"](batches, model, criterion)  # type: ignore[operator]
    assert isinstance(total, float)
    return total


def test_its_sum_stays_on_the_device() -> None:
    after = fixed(CODE, "SYNC01", unsafe=False)
    assert "total += loss.double() * len(x)" in after
    assert evaluated(after) == evaluated(CODE)


MADE = "loss, output = criterion(model, x.cuda(), y.cuda())\n            total"


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        (MADE, "loss = criterion(model(x.cuda()), y.cuda())\n            total"),
        (MADE, "output, loss = criterion(model(x.cuda()), y.cuda())\n            total"),
        ("loss.backward()", "loss.backward(output)"),
        ("        loss.backward()", "        loss = loss / 2\n        loss.backward()"),
    ],
)
def test_it_is_left_where_it_may_be_something_else(what: str, instead: str) -> None:
    code = CODE.replace(what, instead)
    [finding] = findings(code, "SYNC01")
    assert finding.fix is None
