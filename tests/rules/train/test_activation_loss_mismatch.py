"""TRAIN06: losses of activated outputs. Fixed code gives the loss of the logits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.support import findings, fixed
from torchlint.finding import Applicability

HEADER = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\ndef loss_of(net, x, y):\n"


def function(*lines: str) -> str:
    return HEADER + "".join(f"    {line}\n" for line in lines)


CLASSES = {
    "right at the loss": (
        ("z = net(x)", "return F.cross_entropy(F.softmax(z, dim=1), y)"),
        ("z = net(x)", "return F.cross_entropy(z, y)"),
    ),
    "of an expression": (
        ("return F.cross_entropy(F.softmax(net(x) / 2, dim=1), y)",),
        ("return F.cross_entropy(net(x) / 2, y)",),
    ),
    "given by name": (
        ("return F.cross_entropy(target=y, input=F.softmax(input=net(x), dim=1))",),
        ("return F.cross_entropy(target=y, input=net(x))",),
    ),
    "in modules": (
        ("return nn.CrossEntropyLoss()(nn.Softmax(dim=1)(net(x)), y)",),
        ("return nn.CrossEntropyLoss()(net(x), y)",),
    ),
    "in a variable of its own": (
        ("z = net(x)", "p = F.softmax(z, dim=1)", "return F.cross_entropy(p, y)"),
        ("z = net(x)", "return F.cross_entropy(z, y)"),
    ),
    "in a variable, of an expression": (
        ("p = torch.softmax(net(x), -1)", "return F.cross_entropy(p, y)"),
        ("p = net(x)", "return F.cross_entropy(p, y)"),
    ),
    "that other code reads": (
        ("z = net(x)", "p = z.softmax(1)", "loss = F.cross_entropy(p, y)", "print(p)", "return loss"),
        ("z = net(x)", "p = z.softmax(1)", "loss = F.cross_entropy(z, y)", "print(p)", "return loss"),
    ),
    "without its logarithm": (
        ("return F.nll_loss(F.softmax(net(x), dim=1), y)",),
        ("return F.nll_loss(F.log_softmax(net(x), dim=1), y)",),
    ),
    "in a variable, without its logarithm": (
        ("p = net(x).softmax(1)", "return nn.NLLLoss()(p, y)"),
        ("p = net(x).log_softmax(1)", "return nn.NLLLoss()(p, y)"),
    ),
}


def loss_of(code: str, y: torch.Tensor) -> torch.Tensor:
    scope: dict[str, Any] = {}
    exec(code, scope)
    torch.manual_seed(0)
    loss = scope["loss_of"](torch.nn.Linear(4, 3), torch.randn(5, 4), y)
    assert isinstance(loss, torch.Tensor)
    return loss


def logits() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)(torch.randn(5, 4))


@pytest.mark.parametrize(("before", "after"), CLASSES.values(), ids=CLASSES)
def test_the_loss_is_that_of_the_logits(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    y = torch.tensor([0, 2, 1, 1, 0])
    [finding] = findings(function(*before), "TRAIN06")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert fixed(function(*before), "TRAIN06") == function(*after)
    expected = functional.cross_entropy(logits() / (2 if "/ 2" in before[0] else 1), y)
    assert torch.allclose(loss_of(function(*after), y), expected)
    assert not torch.allclose(loss_of(function(*before), y), expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.sigmoid(net(x))", "net(x)"),
        ("net(x).sigmoid()", "net(x)"),
        ("torch.sigmoid(net(x) * 3)", "net(x) * 3"),
    ],
)
def test_a_sigmoid_is_applied_once(before: str, after: str) -> None:
    call = "return F.binary_cross_entropy_with_logits({}, y)"
    assert fixed(function(call.format(before)), "TRAIN06") == function(call.format(after))
    y = torch.ones(5, 3)
    scaled = logits() * (3 if "3" in before else 1)
    assert torch.allclose(
        loss_of(function(call.format(after)), y), functional.binary_cross_entropy(torch.sigmoid(scaled), y), atol=1e-6
    )


SILENT = {
    "logits": "return F.cross_entropy(net(x), y)",
    "log probabilities": "return F.nll_loss(F.log_softmax(net(x), dim=1), y)",
    "the logarithm of probabilities": "return F.nll_loss(torch.log(F.softmax(net(x), dim=1)), y)",
    "probabilities as the target": "return F.kl_div(F.log_softmax(net(x), 1), F.softmax(y, 1))",
    "the layer before": "net = nn.Sequential(nn.Linear(3, 3), nn.Softmax(1))\n    return F.cross_entropy(net[0](x), y)",
    "probabilities for a metric": "p = F.softmax(net(x), dim=1)\n    return p.argmax(1)",
}


@pytest.mark.parametrize("line", SILENT.values(), ids=SILENT)
def test_stays_silent(line: str) -> None:
    assert findings(function(line), "TRAIN06") == []


REASONS = {
    "no variable keeps what": ("z = net(x)", "z = F.softmax(z, dim=1)", "print(z)", "return F.cross_entropy(z, y)"),
    "has other values": ("z = net(x)", "p = F.softmax(z, 1)", "z.mul_(2)", "return F.cross_entropy(p, y)"),
    "or `p` has other values": ("z = net(x)", "p = F.softmax(z, 1)", "z[0] = 2", "return F.cross_entropy(p, y)"),
    "more is done": ("return F.cross_entropy(torch.softmax(net(x), 1).squeeze(), y)",),
    "other code reads the probabilities": ("p = F.softmax(net(x), 1)", "print(p)", "return F.nll_loss(p, y)"),
}


@pytest.mark.parametrize(("reason", "lines"), REASONS.items(), ids=REASONS)
def test_why_there_is_no_fix(reason: str, lines: tuple[str, ...]) -> None:
    [finding] = findings(function(*lines), "TRAIN06")
    assert finding.fix is None
    assert reason in finding.no_fix
