"""Numbers that are read from the device and go right back into an operation on tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.sync.programs import HEAD, training
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source


def _lines(code: str) -> list[str]:
    return [finding.message for finding in findings(code, "SYNC01") if "compute with tensors" in finding.message]


@pytest.mark.parametrize(
    "body",
    [
        "scaled = out.softmax(1) / loss.item()\nmodel(scaled)",
        "scaled = out.softmax(1) / (loss.item() + 1e-8)\nmodel(scaled)",
        "size = float(out.norm())\nscaled = out.softmax(1) / size\nmodel(scaled)",
        "size = out.norm().item()\nmodel(out.softmax(1) * size - size * out.exp())",
    ],
)
def test_what_goes_back_to_the_device_need_not_leave_it(body: str) -> None:
    code = training(body)
    (message,) = _lines(code)
    assert "in every training step" in message
    assert all(finding.fix is None for finding in findings(code, "SYNC01") if finding.message == message)


@pytest.mark.parametrize(
    "body",
    [
        "scaled = torch.ones(3) / loss.item()\nmodel(scaled)",  # of the host
        "scaled = 3.0 / loss.item()\nmodel(scaled)",
        "scaled = weights / loss.item()\nmodel(scaled)",  # who knows
        "size = out.norm().item()\nif size > 3:\n    break\nmodel(out.exp() / size)",
        "size = out.norm().item()\nmodel(out.exp() / size)\nrange(size)",
        "size = out.norm().item()\nsize = max(size, 3)\nmodel(out.exp() / size)",
        "if step % 100 == 0:\n    model(out.softmax(1) / loss.item())",
        "model(out.softmax(1) ** loss.item())",
        "host = out.cpu()\nmodel(out.softmax(1) / host.norm().item())",
    ],
)
def test_other_numbers_are_no_such_case(body: str) -> None:
    assert _lines(training(body, "weights = given()")) == []


NOISY = (
    HEAD
    + """
def noisy(points, strength):
    return points + torch.randn_like(points) * {used}


def blurred(points, strength):
    return noisy(points, strength)


"""
)


@pytest.mark.parametrize(
    ("used", "call", "count"),
    [
        ("strength", "noisy(out, loss.item())", 1),
        ("strength", "blurred(out, strength=loss.item())", 1),
        ("min(strength, 1)", "noisy(out, loss.item())", 0),
        ("strength", "noisy(torch.zeros(3), loss.item())", 0),  # of the host
        ("strength", "unknown(out, loss.item())", 0),
    ],
)
def test_a_function_may_put_the_number_back(used: str, call: str, count: int) -> None:
    assert len(_lines(training(f"model({call})", head=NOISY.format(used=used)))) == count


LOSS = """
import torch

def weighted(out, weights):
    weights = torch.exp(-weights).cuda() if {moves} else torch.exp(-weights)
    return (out * weights).sum() / torch.sum(weights).item()
"""
MAIN = """
import torch
from losses import weighted

def train(model, loader, optimizer, n):
    for i, (x, y) in enumerate(loader):
        {call}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("moves", "call", "count"),
    [
        ("weights.is_cuda", "loss = weighted(model(x.cuda()), y)", 1),
        ("weights.is_cuda", "loss = model(x.cuda()).mean()\n        if i % 50 == 0: print(weighted(loss, y))", 0),
    ],
)
def test_a_loss_of_which_each_call_is_a_step(tmp_path: Path, moves: str, call: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "losses.py").write_text(LOSS.format(moves=moves))
    (tmp_path / "main.py").write_text(MAIN.format(call=call))
    source = Source.read(tmp_path / "losses.py")
    assert len(lint(source, Settings.selecting("SYNC01"), strict=True, project=Project())) == count
