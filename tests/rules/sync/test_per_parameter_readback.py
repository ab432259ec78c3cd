"""SYNC09: a number that is read for each parameter of the model, in every step."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import TORCH_ONLY, line_of, result_of, training
from tests.support import findings, fixed
from torchlint.finding import Applicability

ALL = ("SYNC01", "SYNC02", "SYNC03", "SYNC04", "SYNC05", "SYNC06", "SYNC07", "SYNC09")

PER_PARAMETER = {
    "a sum of norms": training("for p in model.parameters():\n    total += p.grad.norm(2).item() ** 2", "total = 0.0"),
    "a number made a number again": training(
        "for p in model.parameters():\n    total += float(p.grad.norm(2).item())", "total = 0.0"
    ),
    "by name": training(
        "for p in model.parameters():\n    norm = p.grad.data.norm(2)\n    total += norm.item() ** 2", "total = 0.0"
    ),
    "a comprehension": training("norms = [p.grad.norm().item() for p in model.parameters()]\nprint(sum(norms))"),
    "a list of parameters": training(
        "for p in params:\n    total += float(p.grad.norm())", "total, params = 0.0, list(model.parameters())"
    ),
    "written to tensorboard": training(
        "for name, p in model.named_parameters():\n    writer.add_scalar(name, p.grad.norm(), step)", "writer = make()"
    ),
    "a histogram of its array": training(
        "for name, p in model.named_parameters():\n    writer.add_histogram(name, p.grad.data.cpu().numpy(), step)",
        "writer = make()",
    ),
    "printed": training("for name, p in model.named_parameters():\n    print(name, p.grad.norm())"),
    "a helper that runs in every step": training("print(norm_of(model))").replace(
        "def train",
        "def norm_of(model):\n    total = 0.0\n    for p in model.parameters():\n"
        "        total += p.grad.norm().item()\n    return total\n\n\ndef train",
    ),
}

SILENT = {
    "at log intervals": training(
        "if step % 100 == 0:\n    for p in model.parameters():\n        total += p.grad.norm().item()", "total = 0.0"
    ),
    "on the device": training("for p in model.parameters():\n    total += p.grad.norm()", "total = 0.0"),
    "numbers of Python": training("for p in model.parameters():\n    total += p.numel()", "total = 0"),
    "histograms at log intervals": training(
        "if step % 100 == 0:\n    for name, p in model.named_parameters():\n"
        "        writer.add_histogram(name, p.grad.cpu().numpy(), step)",
        "writer = make()",
    ),
    "copies that are kept": training(
        "for name, p in model.named_parameters():\n    kept[name] = p.detach().cpu().numpy()", "kept = {}"
    ),
    "copies that something computes with": training(
        "for name, p in model.named_parameters():\n    writer.add_scalar(name, rank_of(p.cpu().numpy()), step)",
        "writer = make()",
    ),
    "shapes": training("for name, p in model.named_parameters():\n    print(name, p.shape)"),
    "before the training": training("pass", "for p in model.parameters():\n    print(p.norm().item())"),
    "after the training": training("pass", after="for p in model.parameters():\n    print(p.norm().item())"),
    "a test case that asserts it": training(
        "for p in model.parameters():\n    self.assertGreater(p.grad.norm().item(), 0)"
    ),
    "a decision about the parameter": training(
        "for p in model.parameters():\n    if p.grad.norm().item() > 1:\n        p.grad.zero_()"
    ),
    "something else in the loop": training(
        "for p in model.parameters():\n    seen += len(p)\nprint(loss.item())", "seen = 0"
    ),
}


@pytest.mark.parametrize("code", PER_PARAMETER.values(), ids=PER_PARAMETER)
def test_a_number_per_parameter_is_found_once_and_by_this_rule_alone(code: str) -> None:
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC09"]


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_what_is_rare_or_reads_nothing_is_silent(code: str) -> None:
    assert findings(code, "SYNC09") == []


def test_the_message_names_the_read() -> None:
    code = PER_PARAMETER["a sum of norms"]
    [finding] = findings(code, "SYNC09")
    assert finding.line == line_of(code, "p.grad.norm(2)")
    assert "`p.grad.norm(2).item()` makes the host wait for the device once per parameter" in finding.message


# -- the fix ---------------------------------------------------------------------------------------------------------

REWRITES = {
    "a sum of squares": (
        "total = 0.0\nfor p in model.parameters():\n    total += p.grad.norm(2).item() ** 2\nnorms.append(total)"
    ),
    "the norm of all": (
        "total = 0\nfor p in model.parameters():\n    norm = p.grad.data.norm(2)\n    total += norm.item() ** 2\n"
        "total = total ** (1. / 2)\nnorms.append(total)"
    ),
    "a sum of means": (
        "total = 0.0\nfor p in model.parameters():\n    total += float(p.grad.mean())\nnorms.append(total * 2)"
    ),
}


@pytest.mark.parametrize("body", REWRITES.values(), ids=REWRITES)
def test_the_sum_on_the_device_is_the_same_number(body: str) -> None:
    code = training(body, "norms = []", "return norms", head=TORCH_ONLY)
    [finding] = findings(code, "SYNC09")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    new = fixed(code, "SYNC09")
    assert ".double()" in new
    assert findings(new, "SYNC09") == []
    before, after = result_of(code, "train", 3), result_of(new, "train", 3)
    assert all(isinstance(number, float) for number in after)
    assert before == pytest.approx(after, rel=1e-14)


UNFIXED = {
    "a list": training("norms = [p.grad.norm().item() for p in model.parameters()]\nprint(norms)"),
    "a largest": training("for p in model.parameters():\n    top = max(top, p.grad.abs().max().item())", "top = 0.0"),
    "the sum is read on the way": training(
        "for p in model.parameters():\n    total += p.grad.norm().item()\n    print(total)", "total = 0.0"
    ),
    "without double precision": training(
        "for p in model.parameters():\n    total += p.grad.norm().item()", "total = 0.0"
    ).replace('"cpu")', '"mps")'),
}


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED)
def test_no_fix_where_more_than_the_sum_is_read(code: str) -> None:
    assert all(finding.fix is None for finding in findings(code, "SYNC09"))


SCORED = """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
measures = [nn.Linear(3, 1).to(device), nn.Linear(3, 2).to(device)]
images = torch.ones(4, 3, device=device)
with torch.no_grad():
    for measure in measures:
        scores = []
        for image in images:
            scores.append(measure(image).sum().item())
        print(scores)
"""


def test_networks_that_a_loop_runs_are_no_parameters() -> None:
    assert findings(SCORED, "SYNC09") == []
    assert findings(SCORED, "SYNC01") != []


OPTIMIZER = """\
import torch

class Own(BASE):
    def METHOD(self):
        total = 0.0
        for group in self.param_groups:
            for p in group["params"]:
                total += p.grad.norm().item()
                p.data.sub_(p.grad, alpha=group["lr"])
        self.norms.append(total)

device = torch.device("cuda")
"""


@pytest.mark.parametrize(
    ("base", "method", "count"),
    [("torch.optim.Optimizer", "step", 1), ("torch.optim.SGD", "report", 0), ("Solver", "step", 0)],
)
def test_the_step_of_an_optimizer_runs_in_every_training_step(base: str, method: str, count: int) -> None:
    assert len(findings(OPTIMIZER.replace("BASE", base).replace("METHOD", method), "SYNC09")) == count
