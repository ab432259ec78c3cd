"""Training steps that other functions help with, that several optimizers share, or that a base class runs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import findings, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

HELPED = """
    import torch

    class Learner:
        def __init__(self, net, features, device):
            self.net, self.features = net.to(device), features.to(device)
            self.optimizers = {{"sgd": torch.optim.SGD(net.parameters(), 0.1)}}
            self.scaler = torch.amp.GradScaler()
            self.optimizer = torch.optim.Adam(net.parameters())
            self.losses = []

        def descend(self, loss):
            for name in self.optimizers:
                self.optimizers[name].zero_grad()
            loss.backward()
            for name in self.optimizers:
                {step}

        def fit(self, x, y):
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            {body}
            self.losses.append(loss.item())
"""


@pytest.mark.parametrize(
    ("step", "body", "lines"),
    [
        ("self.optimizers[name].step()", "self.descend(loss)", [21]),
        ("self.optimizers[name].step()", "for _ in range(3): self.descend(loss)", []),
        ("self.optimizers[name].step()", "self.descend()", []),
        ("self.log(name)", "self.descend(loss)", []),  # the optimizer may step every now and then
        ("pass", "self.scaler.scale(loss).backward(); self.scaler.step(self.optimizer)", [21]),
        ("pass", "loss.backward(); self.optimizer.step(self.closure)", []),
    ],
)
def test_a_helper_may_take_the_step_back(step: str, body: str, lines: list[int]) -> None:
    found = findings(HELPED.format(step=step, body=body), "SYNC01")
    assert [finding.line for finding in found] == lines


PARTS = """
    import torch
    from torch.utils.data import DataLoader

    class Learner:
        def __init__(self, net, features, held_out, device):
            self.net, self.features = net.to(device), features.to(device)
            self.optimizer = torch.optim.SGD(net.parameters(), 0.1)
            self.held_out = DataLoader(held_out, 4)
            self.log = {{}}

        def fit(self, x, y):
            out = self.net(x)
            seen, wanted = self.features(out), self.features(y)
            loss, other = torch.nn.functional.mse_loss(out, y), 0
            for a, b in {parts}:
                {body}
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.log["loss"] = loss.item()
"""


@pytest.mark.parametrize(
    ("parts", "body", "lines"),
    [
        ("zip(seen, wanted)", "loss += (self.net(a) - b).abs().mean()", [20]),
        ("zip(seen, wanted)", "other += (self.net(a) - b).abs().mean()", []),
        ("self.held_out", "loss += (self.net(a) - b).abs().mean()", []),
    ],
)
def test_a_loop_over_the_parts_of_a_loss_is_no_pass_over_data(parts: str, body: str, lines: list[int]) -> None:
    found = findings(PARTS.format(parts=parts, body=body), "SYNC01")
    assert [finding.line for finding in found] == lines


SEVERAL = """
    import torch

    def step_all(optimizers, losses):
        for optimizer, loss in zip(optimizers, losses):
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()

    def train(first, second, optimizers, batches):
        total = 0.0
        first, second = first.cuda(), second.cuda()
        for x, y in batches:
            x, y = x.cuda(), y.cuda()
            a = torch.nn.functional.mse_loss(first(x), y)
            b = torch.nn.functional.mse_loss(second(x), y)
            step_all(optimizers, [a, b])
            total += a.item()  # here
        return total

    def compare(make, optimizers, x, y):
        best = []
        for optimizer in optimizers:
            model = make().cuda()
            for _ in range(100):
                loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            best.append(loss.item())
        return best
"""


def test_a_loop_over_optimizers_is_one_step_of_several_networks() -> None:
    assert [finding.line for finding in findings(SEVERAL, "SYNC01")] == marked(dedent(SEVERAL).lstrip())


BASE = """
    from torch import nn

    class Criterion(nn.Module):
        def forward(self, outputs, targets):
            return self.measure(outputs, targets)

        def report(self, outputs, targets):
            return self.count(outputs, targets)
"""
DERIVED = """
    import torch
    from base import Criterion

    class Classes(Criterion):
        def __init__(self):
            super().__init__()
            self.loss = torch.nn.CrossEntropyLoss().cuda()
            self.right = 0

        def measure(self, outputs, targets):
            best = torch.max(outputs["scores"], 1)[1]
            self.right += (best == targets["classes"]).sum().item()  # here
            return self.loss(outputs["scores"], targets["classes"])

        def count(self, outputs, targets):
            self.right = (torch.max(outputs["scores"], 1)[1] == targets["classes"]).sum().item()
"""


def test_the_forward_of_a_base_class_runs_a_method_in_each_step(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "base.py").write_text(dedent(BASE).lstrip())
    (tmp_path / "classes.py").write_text(dedent(DERIVED).lstrip())
    settings = Settings.selecting("SYNC06")
    found = lint(Source.read(tmp_path / "classes.py"), settings, strict=True, project=Project())
    assert [finding.line for finding in found] == marked(dedent(DERIVED).lstrip())


TAKEN_BACK = """
    import torch
    from torch.nn import functional as F

    class Trainer:
        def train(self, trainer, log):
            for x, y in trainer.loader:
                x, y = x.to(trainer.device), y.to(trainer.device)
                error = self.step(x, y)
                log.log_metric("error", {read})

        def step(self, x, y):
            self.trainer.optimizer.zero_grad()
            loss = F.cross_entropy(self.trainer.model.encoder(x), y)
            {back}
            return {returned}
"""


@pytest.mark.parametrize(
    ("read", "back", "returned", "count"),
    [
        ("error.item()", "loss.backward()\n            self.trainer.optimizer.step()", "loss", 1),
        ("error", "loss.backward()\n            self.trainer.optimizer.step()", "len(x)", 0),
        ("float(error)", "loss.backward()\n            self.trainer.optimizer.step()", "len(x)", 0),
    ],
)
def test_a_step_that_goes_back_itself_has_run_a_model(read: str, back: str, returned: str, count: int) -> None:
    code = TAKEN_BACK.format(read=read, back=back, returned=returned)
    assert len(findings(code, "SYNC01")) == count


STEPPING = """
    import torch

    class Trainer:
        def __init__(self, net, optimizer):
            self.net, self.optimizer = net.cuda(), optimizer

        def step(self, x, y):
            self.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(self.net(x.cuda()), y.cuda())
            loss.backward()
            self.optimizer.step()
            return {"loss": loss.item()}

    class Other(Trainer):
        pass
"""

RUNNING = """
    from stepping import Other, Trainer

    def fit(options, net, optimizer, writer, batches):
        trainer = Trainer(net, optimizer) if options.plain else Other(net, optimizer)

        def one(i, x, y):
            {guard}
            losses = trainer.step(x, y)
            if i % 50 == 0:
                writer.add_scalar("loss", losses["loss"], i)

        for i in range(options.steps):
            one(i, *batches.next())
"""


@pytest.mark.parametrize(("guard", "count"), [("print(i)", 1), ("if i % 50: return", 0)])
def test_a_whole_step_that_a_function_of_another_file_does(tmp_path: Path, guard: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "stepping.py").write_text(dedent(STEPPING).lstrip())
    (tmp_path / "running.py").write_text(dedent(RUNNING.format(guard=guard)).lstrip())
    source = Source.read(tmp_path / "stepping.py")
    found = lint(source, Settings.selecting("SYNC01"), strict=True, project=Project())
    assert len(found) == count
