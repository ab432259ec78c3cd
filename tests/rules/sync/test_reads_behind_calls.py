"""Reads whose number a function returns beside other things, and reads of what a call computes out of sight."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.sync.programs import evaluation, training
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Finding
from torchlint.semantics.project import Project
from torchlint.source import Source

STEP = """
    import torch

    def loss_of(model, x, y):
        x, y = x.cuda(), y.cuda()
        error = torch.nn.functional.mse_loss(model(x), y)
        return {returned}

    def train(model, loader, optimizer, bar):
        history = []
        for x, y in loader:
            optimizer.zero_grad()
            {names} = loss_of(model, x, y)
            loss.backward()
            optimizer.step()
            {use}
        return history
"""


@pytest.mark.parametrize(
    ("returned", "names", "use", "count"),
    [
        ("error, error.item()", "loss, shown", "history.append(shown)", 1),
        ("error, {'error': error.item()}", "loss, shown", "bar.set_postfix(**shown)", 1),
        ("error, {'error': error.item()}", "loss, shown", "for name in shown: history.append(shown[name])", 1),
        ("error, {'error': error.item()}", "loss, shown", "for name, v in shown.items(): history.append(v)", 1),
        ("error, [error.item()]", "loss, shown", "optimizer.scale(shown)\n            model.scale(shown[0])", 0),
        ("error, error.item()", "loss, shown", "if shown > 9: break", 0),
        ("error, error.item()", "loss, *shown", "history.append(shown)", 0),
        ("error.item(), error", "weight, loss", "model.rescale(weight)\n            print(weight)", 1),
        ("error.item(), error", "weight, loss", "x = x * weight\n            history.append(model(x))", 0),
    ],
)
def test_each_part_that_a_function_returns_goes_its_own_way(returned: str, names: str, use: str, count: int) -> None:
    assert len(findings(STEP.format(returned=returned, names=names, use=use), "SYNC01")) == count


@pytest.mark.parametrize(
    ("use", "count"),
    [("history.append(shown)", 1), ("bar.set_postfix(error=shown)", 1), ("if shown > 9: break", 0)],
)
def test_a_number_is_followed_to_the_loop_of_another_file(tmp_path: Path, use: str, count: int) -> None:
    helper, _ = dedent(STEP).split("def train", 1)
    call = STEP.format(returned="error, error.item()", names="loss, shown", use=use)
    (tmp_path / "main.py").write_text("from losses import loss_of\n\ndef train" + dedent(call).split("def train", 1)[1])
    found = _found_in(tmp_path, "losses.py", helper.format(returned="error, error.item()"))
    assert len(found) == count


NETWORK = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)

    @staticmethod
    def train_step(net, optimizer, batches):
        x, y = next(batches)
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}
"""
DRIVER = """
import torch
from nets import Net

def main(batches, logs):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(1000):
        shown = net.train_step(net, optimizer, batches)
        {use}
"""


@pytest.mark.parametrize(
    ("use", "count"),
    [("logs.append(shown)", 1), ("print(shown)", 1), ("if shown['loss'] > 9: break", 0)],
)
def test_what_a_method_that_is_a_step_returns_is_followed_to_the_file_that_calls_it(
    tmp_path: Path, use: str, count: int
) -> None:
    (tmp_path / "main.py").write_text(DRIVER.replace("{use}", use))
    assert len(_found_in(tmp_path, "nets.py", NETWORK)) == count


def _found_in(path: Path, name: str, code: str) -> list[Finding]:
    (path / "pyproject.toml").touch()
    (path / name).write_text(code)
    return lint(Source.read(path / name), Settings.selecting("SYNC01"), strict=True, project=Project())


@pytest.mark.parametrize(
    ("body", "after", "count"),
    [
        ("last = loss.item()", "last /= 3\nreturn last", 1),
        ("last = loss.item()", "last = 3\nreturn last", 0),
    ],
)
def test_what_is_divided_behind_the_loop_is_read_there(body: str, after: str, count: int) -> None:
    assert len(findings(training(body, "last = 0.0", after), "SYNC01")) == count


def test_a_tuple_that_is_taken_apart_at_once_goes_to_each_of_its_names() -> None:
    body = "shown, best = loss.item(), out.argmax(1)\nhistory.append(shown)\nout = out[best]"
    assert len(findings(evaluation(body, "history = []"), "SYNC01")) == 1


GIVEN = """
    import torch

    @torch.no_grad()
    def measure(model, loader, criterion):
        model.eval()
        total = 0.0
        for x, y in loader:
            {body}
        return total
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (
            "x = x.cuda()\n            loss, out = criterion(model, x, y)\n            total += loss.item()",
            1,
        ),
        ("out = measure_all(model, loader, 'cuda')\n            total += out.item()", 0),
    ],
)
def test_a_call_that_is_given_a_model_and_a_batch_runs_the_model(body: str, count: int) -> None:
    assert len(findings(GIVEN.format(body=body), "SYNC01")) == count


SPEAKERS = """
    import torch
    from torch import nn

    class Verifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(80, 192).cuda()

        def {name}(self, clips, pairs):
            {first}
            known = {{clip: self.encoder(clip.cuda()) for clip in clips}}
            scores = []
            for a, b in pairs:
                score = torch.mean(torch.matmul(self.encoder(clips[a].cuda()), self.encoder(clips[b].cuda()).T))
                scores.append(score.item())
            return scores
"""


@pytest.mark.parametrize(
    ("name", "first", "count"),
    [("verify", "self.eval()", 1), ("verify", "self.encoder.eval()", 0), ("forward", "size = len(clips)", 0)],
)
def test_a_method_that_switches_the_mode_of_its_model_is_no_forward_pass(name: str, first: str, count: int) -> None:
    assert len(findings(SPEAKERS.format(name=name, first=first), "SYNC01")) == count


SAMPLES = """
    import math
    import torch
    from torch.nn import functional as F

    @torch.no_grad()
    def measure(model, loader):
        found = []
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            out = model(x)
            for j in range(len(x)):
                {body}
        return found
"""


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("found.append(-10 * math.log10(torch.mean((out[j] - y[j]) ** 2).cpu().data))", ["SYNC01"]),
        ("found.append(F.mse_loss(out[j], y[j]).item())", ["SYNC01"]),
        ("found.append((out[j] - y[j]).abs().mean().item())", ["SYNC01"]),
        ("found.append(out[j].max().item())", ["SYNC01"]),
        ("found.append(out.argmax(1)[j].item())", []),
        ("if F.mse_loss(out[j], y[j]).item() < 1: found.append(j)", []),
        ("found.append(torch.tensor([j, 2.0]).mean().item())", []),
    ],
)
def test_a_measure_of_every_single_sample_is_read_once_per_sample(body: str, codes: list[str]) -> None:
    assert [finding.code for finding in findings(SAMPLES.format(body=body), "SYNC01", "SYNC02", "SYNC03")] == codes


GATHERED = """
    import numpy as np
    import torch
    from library import {name}

    def train(model, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            model(x.cuda(), y.cuda()).backward()
            optimizer.step()
            evaluate(model, loader)

    def evaluate(model, loader):
        metrics, kept, held = {{}}, None, None
        for x, _ in loader:
            scores = model(x)
            held = scores if held is None else torch.cat((held, scores))
        losses = {name}(held)
        kept = {kept}
        metrics["loss"] = kept.mean().item()
        return metrics
"""


@pytest.mark.parametrize(
    ("name", "kept", "count"),
    [
        ("gather", "losses", 1),
        ("nested_numpify", "losses", 0),
        ("gather", "losses if kept is None else np.concatenate((kept, losses))", 0),
        ("gather", "losses if kept is None else torch.cat((kept, losses))", 1),
    ],
)
def test_what_numpy_joins_or_a_function_by_its_name_copies_is_on_the_host(name: str, kept: str, count: int) -> None:
    assert len(findings(GATHERED.format(name=name, kept=kept), "SYNC01")) == count
