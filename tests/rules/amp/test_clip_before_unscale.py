"""AMP04: gradients that are clipped while they are scaled. Programs run with the scaler of the host."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest
import torch

from tests.support import findings, fixed
from torchlint.finding import Applicability

HEADER = """\
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

model, other = nn.Linear(3, 1), nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=1.0)
opt2 = torch.optim.SGD(other.parameters(), lr=1.0)
scaler = torch.amp.GradScaler("cpu")
batches = [torch.ones(2, 3) * 100 for _ in range(4)]
lengths = []


def length(optimizer):
    grads = [p.grad.flatten() for group in optimizer.param_groups for p in group["params"]]
    lengths.append(torch.cat(grads).norm().item())


"""


def steps(*lines: str) -> str:
    """Epochs of batches with the given lines after the backward pass."""
    forward = "opt.zero_grad()\nopt2.zero_grad()\nloss = (model(x) + other(x)).sum()\nscaler.scale(loss).backward()\n"
    return HEADER + "for i, x in enumerate(batches):\n" + indent(forward + "\n".join(lines) + "\n", "    ")


CLIP = "clip_grad_norm_(model.parameters(), 1.0)"
STEP = ("scaler.step(opt)", "scaler.update()", "length(opt)")
CASES = {
    "one optimizer": ((CLIP, *STEP), "    scaler.unscale_(opt)\n"),
    "two optimizers": (
        (CLIP, "scaler.step(opt)", "scaler.step(opt2)", "scaler.update()", "length(opt)"),
        "    scaler.unscale_(opt)\n    scaler.unscale_(opt2)\n",
    ),
    "two clippings of one optimizer": (
        ("clip_grad_value_([model.bias], 0.5)", CLIP, *STEP),
        "    scaler.unscale_(opt)\n",
    ),
    "each optimizer for itself": (
        (CLIP, "scaler.step(opt)", "clip_grad_norm_(other.parameters(), 1.0)", "scaler.step(opt2)", *STEP[1:]),
        "    scaler.unscale_(opt)\n",
    ),
    "a loop over parameters": (
        ("for p in model.parameters():", "    p.grad.clamp_(-0.5, 0.5)", *STEP),
        "    scaler.unscale_(opt)\n",
    ),
    "under a condition": (("if i < 9:", f"    {CLIP}", *STEP), "        scaler.unscale_(opt)\n"),
    "together with the step": (
        ("if i % 2:", f"    {CLIP}", *(f"    {line}" for line in STEP)),
        "        scaler.unscale_(opt)\n",
    ),
}


def lengths_of(code: str) -> list[float]:
    scope: dict[str, Any] = {}
    torch.manual_seed(0)
    exec(code, scope)
    return list(scope["lengths"])


@pytest.mark.parametrize(("lines", "added"), CASES.values(), ids=CASES)
def test_gradients_are_unscaled_once_and_clipped_to_the_limit(lines: tuple[str, ...], added: str) -> None:
    before = steps(*lines)
    after = fixed(before, "AMP04")
    assert added in after
    assert after.count("unscale_(opt)") == 1
    assert findings(after, "AMP04") == []
    small, full = lengths_of(before), lengths_of(after)
    assert all(length == pytest.approx(1.0, rel=1e-3) for length in full)
    assert max(small) < 0.01


def test_is_never_safe() -> None:
    [finding] = findings(steps(CLIP, *STEP), "AMP04")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


SILENT = {
    "unscaled before": ("scaler.unscale_(opt)", CLIP, *STEP),
    "clipped after the step": (*STEP, CLIP),
    "nothing is clipped": STEP,
}


@pytest.mark.parametrize("lines", SILENT.values(), ids=SILENT)
def test_stays_silent(lines: tuple[str, ...]) -> None:
    assert findings(steps(*lines), "AMP04") == []


EACH = ("if i % 2:", f"    {CLIP}", "if i > 1:", "    clip_grad_norm_(other.parameters(), 1.0)", *STEP)
TOGETHER = (CLIP, "if i > 1:", "    clip_grad_norm_(other.parameters(), 1.0)", *STEP)


def test_clippings_that_do_without_each_other_are_reported_each() -> None:
    found = findings(steps(*EACH), "AMP04")
    assert len(found) == 2
    assert all(finding.fix is None for finding in found)
    assert len(findings(steps(*TOGETHER), "AMP04")) == 1


REASONS = {
    "conditions that cannot be asked": (CLIP, "if i % 2:", *(f"    {line}" for line in STEP)),
    "no name of its own": (CLIP, "for o in [opt, opt2]:", "    scaler.step(o)", "scaler.update()"),
}


@pytest.mark.parametrize(("reason", "lines"), REASONS.items(), ids=REASONS)
def test_why_there_is_no_fix(reason: str, lines: tuple[str, ...]) -> None:
    [finding] = findings(steps(*lines), "AMP04")
    assert finding.fix is None
    assert reason in finding.no_fix


PARSER = """\
import torch
from torch import nn


class Parser:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=1.0)
        self.scaler = torch.amp.GradScaler("cpu")

    def train(self, batches):
        for x in batches:
            self.opt.zero_grad()
            self.scaler.scale(self.model(x).sum()).backward()
            self.clip_grad_norm_(self.model.parameters(), 1.0)
            self.scaler.step(self.opt)
            self.scaler.update()

    def clip_grad_norm_(self, params, limit):
        {first}
        return nn.utils.clip_grad_norm_(params, limit)


Parser().train([torch.ones(2, 3)])
"""


@pytest.mark.parametrize(("first", "count"), [("self.scaler.unscale_(self.opt)", 0), ("params = list(params)", 1)])
def test_a_method_of_its_own_that_is_named_like_that_of_torch(first: str, count: int) -> None:
    assert len(findings(PARSER.format(first=first), "AMP04")) == count
