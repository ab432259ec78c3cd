"""SYNC01, SYNC03, SYNC05, SYNC07: measures of other libraries, names used in several loops, helpers of other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.sync.programs import HEAD, evaluation, line_of, training
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

SKLEARN = "import sklearn.metrics\nfrom sklearn.metrics import confusion_matrix, f1_score, roc_curve"


@pytest.mark.parametrize(
    "body",
    [
        "share = f1_score(targets[step], out.argmax(1).cpu(), average='macro')\nkept.append(share)",
        "total += sklearn.metrics.roc_auc_score(targets[step], out[:, 1].detach().to('cpu').numpy())",
        "print(sklearn.metrics.mean_absolute_error(out[:, 0].detach().to(device='cpu'), targets[step]))",
    ],
)
@pytest.mark.parametrize("loop", [training, evaluation])
def test_a_measure_of_sklearn_is_one_number_of_the_copy(loop: object, body: str) -> None:
    code = loop(body, SKLEARN + "\nkept, total = [], 0.0", "return kept, total")  # type: ignore[operator]
    assert [found.code for found in findings(code, "SYNC01", "SYNC03")] == ["SYNC03"]


@pytest.mark.parametrize(
    "body",
    [
        "kept.append(roc_curve(targets[step], out[:, 1].cpu()))",
        "kept.append(confusion_matrix(targets[step], out.argmax(1).cpu()))",
        "if f1_score(targets[step], out.argmax(1).cpu()) < 0.5:\n    break",
    ],
)
def test_what_is_no_number_or_decides_needs_the_copy(body: str) -> None:
    assert not findings(evaluation(body, SKLEARN + "\nkept = []", "return kept"), "SYNC01", "SYNC03")


TWO_LOOPS = """
@torch.no_grad()
def evaluate(model, first, second):
    kept, count = [], 0.0
    for x, y in first:
        guess = model(x.to(device)).argmax(1).cpu()
        count += (guess == y).sum(){between}
    for x, y in second:
        {start}guess = model(x.to(device)).argmax(1).cpu()
        kept.append((guess == y).sum())
    return kept, count
"""


@pytest.mark.parametrize(
    ("between", "start", "count"),
    [
        ("", "", 2),
        ("", "if len(x) > 3:\n            ", 1),  # else the last array of the first loop is there
        ("\n    kept.append(guess)", "", 1),
    ],
)
def test_the_same_name_in_the_next_loop_is_another_array(between: str, start: str, count: int) -> None:
    code = HEAD.lstrip() + TWO_LOOPS.format(between=between, start=start).lstrip()
    assert len(findings(code, "SYNC03")) == count


GROUPED = """
def group(model, batches):
    rows = {{}}
    for x, y in batches:
        x{moved} = x.to(device){given}
        out = model(x)
        for i in range(len(y)):
            rows.setdefault(y[i].item(), []).append(out[i])
    return rows
"""


@pytest.mark.parametrize(
    ("moved", "given", "count"), [(", y", ", y.to(device)", 1), ("", "", 0), (", y", ", model.labels(y)", 0)]
)
def test_what_was_moved_to_a_device_is_a_tensor_where_its_elements_are_read(moved: str, given: str, count: int) -> None:
    code = HEAD.lstrip() + GROUPED.format(moved=moved, given=given).lstrip()
    assert [found.line for found in findings(code, "SYNC07")] == [line_of(code, "y[i].item()")] * count


GATED = """
def evaluate(model, loader, options):
    kept = []
    {maker}
    for x, y in loader:
        x = x.to(device)
        if gate:
            loss = model(gate(x)).mean()
            kept.append(loss.item())
    return kept
"""


@pytest.mark.parametrize(
    ("maker", "count"),
    [
        ("gate = Attack(model, save_steps=False) if options.attack else None", 1),
        ("gate = attacks.Attack(model, save_steps=False)", 1),
        ("gate = attack_every(save_steps=3)", 0),
    ],
)
def test_an_object_is_there_or_not_whatever_it_was_told(maker: str, count: int) -> None:
    code = HEAD.lstrip() + GATED.format(maker=maker).lstrip()
    assert len(findings(code, "SYNC01")) == count


CALLER = """
import torch
from measures import measure


def train(model, loader, optimizer, criterion):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        {}
"""
HELPER = """
import torch


def share(hits, guess):
    assert hits.sum() <= guess.numel()
    return hits.float().mean()


def measure(out, y):
    guess = out.argmax(1)
    return share(guess == y, guess)
"""


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("print(len(loader), measure(out, y).shape)", 1),
        ("measure(out.cpu(), y.cpu())", 0),
        ("measure(out, y)\n        torch.save(model.state_dict(), 'last.pt')", 0),
        ("if len(loader) % 100 == 0:\n            measure(out, y)", 0),
    ],
)
def test_a_helper_asks_what_the_steps_of_another_file_give_it(tmp_path: Path, call: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text(CALLER.format(call))
    assert _lines(tmp_path, HELPER) == [line_of(HELPER, "assert")] * count


def _lines(tmp_path: Path, helper: str) -> list[int]:
    (tmp_path / "measures.py").write_text(helper)
    source = Source.read(tmp_path / "measures.py")
    found = lint(source, Settings.selecting("SYNC05"), strict=True, project=Project())
    return [finding.line for finding in found]


@pytest.mark.parametrize(
    ("guard", "count"),
    [
        ("if mode == 'strict':", 0),
        ("if len(out) > 3 and debug:", 0),
        ("if mode != 'strict':\n        guess = guess + 1\n    else:", 0),
        ("if len(out) > 3:", 1),
    ],
)
def test_what_the_call_of_another_file_may_switch_off_is_silent(tmp_path: Path, guard: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text(CALLER.format("measure(out, y)"))
    helper = HELPER.replace("measure(out, y)", "measure(out, y, mode='', debug=False)")
    helper = helper.replace("    return share(", f"    {guard}\n        return share(")
    assert _lines(tmp_path, helper) == [line_of(helper, "assert")] * count


NAMED = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Losses(nn.Module):
    def forward(self, x, y):
        total = 0.0
        if self.near:
            near, near_share = self.part(x, y)
            total += near
            for k, v in dict(near=near, share=near_share).items():
                self.log(k, v)
        if self.far:
            far, far_share = self.part(y, x)
            total += far
            for k, v in dict(far=far, share=far_share).items():
                self.{used}
        return total

    def part(self, x, y):
        x = x.to(device)
        loss = nn.functional.mse_loss(x, y)
        return loss, loss.detach().sqrt().item()
"""


@pytest.mark.parametrize(("used", "count"), [("log(k, v)", 1), ("step(k, v)", 0)])
def test_the_entries_of_two_dicts_that_go_by_the_same_names_in_two_loops(used: str, count: int) -> None:
    code = NAMED.lstrip().format(used=used)
    assert [found.line for found in findings(code, "SYNC01")] == [line_of(code, ".item()")] * count


KEPT = """
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Trainer:
    def __init__(self, model, parts, optimizer, writer):
        self.model = torch.nn.parallel.DistributedDataParallel(model)
        self.parts_of, self.optimizer, self.writer = parts, optimizer, writer
        self.parts = {{}}

    def report(self, step):
        for name, value in self.parts.items():
            self.writer.add_scalar(name, value.item(), step)

    def fit(self, loader):
        for step, (x, y) in enumerate(loader):
            self.optimizer.zero_grad()
            out = self.model(x.to(device))
            {kept}
            loss = out.mean()
            loss.backward()
            self.optimizer.step()
            self.report(step)
"""


@pytest.mark.parametrize(
    ("kept", "count"),
    [
        ("self.parts = self.parts_of(out, y.to(device))", 1),
        ("self.parts = {'all': out.detach().cpu().mean()}", 0),
        ("self.parts = self.optimizer.state_of()", 0),
    ],
)
def test_what_one_method_keeps_of_its_step_another_reads(kept: str, count: int) -> None:
    code = KEPT.lstrip().format(kept=kept)
    assert [found.line for found in findings(code, "SYNC01")] == [line_of(code, ".item()")] * count
