"""TRAIN01: steps whose gradients nothing resets."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tests.rules.train.loops_that_reset import SILENT
from tests.rules.train.training_loops import CASES, HEADER, LEFT_TO_THE_LOOP, REPORTED
from tests.support import findings, fixed, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability, Confidence
from torchlint.semantics.project import Project
from torchlint.source import Source


def gradients(code: str) -> torch.Tensor:
    """The gradient of `model.weight` at each step, as rows. Learning rates are 0, so the weights stay what they are."""
    torch.manual_seed(0)
    scope: dict[str, Any] = {}
    rows: list[torch.Tensor] = []

    def note(optimizer: torch.optim.Optimizer, *_: object) -> None:
        if any(parameter is scope["model"].weight for parameter in optimizer.param_groups[0]["params"]):
            rows.append(scope["model"].weight.grad.flatten().clone())

    handle = register_optimizer_step_pre_hook(note)
    try:
        exec(code, scope)
    finally:
        handle.remove()
    return torch.stack(rows)


@pytest.mark.parametrize(("code", "added"), CASES)
def test_found_and_fixed(code: str, added: list[str]) -> None:
    before = HEADER + dedent(code)
    found = findings(before, "TRAIN01")
    assert len(found) == 1
    assert not marked(before, "# found") or [finding.line for finding in found] == marked(before, "# found")
    assert found[0].fix is not None
    assert found[0].fix.applicability is Applicability.UNSAFE
    after = fixed(before, "TRAIN01")
    restored = after
    for line in added:
        assert line in restored
        restored = restored.replace(line if line.endswith(" ") else line + "\n", "", 1)
    assert restored == before
    assert torch.allclose(gradients(before), gradients(after).cumsum(0))


def test_a_module_called_grad_resets_nothing() -> None:
    code = "for x, y in loader:\n    criterion(model(x), y).backward()\n    optimizer.step()\n"
    assert len(findings("from numerics.grad import forces\n" + HEADER + code, "TRAIN01")) == 1


def test_a_closure_of_lbfgs_resets_first() -> None:
    code = HEADER + dedent(
        """
        solver = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5)
        x, y = loader[1]

        def closure():
            loss = criterion(model(x), y)
            loss.backward()  # found
            return loss

        solver.step(closure)
        """
    )
    (finding,) = findings(code, "TRAIN01")
    assert "LBFGS" in finding.message
    assert finding.line == marked(code, "# found")[0]
    assert "def closure():\n    solver.zero_grad()\n    loss" in fixed(code, "TRAIN01")


def test_a_closure_of_an_optimizer_out_of_sight_resets_first() -> None:
    code = HEADER + dedent(
        """
        def train(opt):
            for x, y in loader:
                def closure():
                    loss = criterion(model(x), y)
                    loss.backward()
                    return loss

                opt.step(closure)
        """
    )
    after = fixed(code, "TRAIN01")
    assert "def closure():\n            opt.zero_grad()\n            loss" in after
    weights = []
    for program in (after, code.replace("    loss =", "    opt.zero_grad()\n            loss =")):
        scope: dict[str, Any] = {}
        torch.manual_seed(0)
        exec(program, scope)
        scope["train"](torch.optim.LBFGS(scope["model"].parameters(), lr=0.1, max_iter=4))
        weights.append([parameter.detach() for parameter in scope["model"].parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights))


@pytest.mark.parametrize("code", REPORTED)
def test_reported_without_a_fix(code: str) -> None:
    code = HEADER + dedent(code)
    (finding,) = findings(code, "TRAIN01")
    assert finding.fix is None


@pytest.mark.parametrize("code", LEFT_TO_THE_LOOP)
def test_nothing_but_the_loop_resets(code: str) -> None:
    assert len(findings(HEADER + dedent(code), "TRAIN01")) == 1


@pytest.mark.parametrize("code", SILENT)
def test_silent(code: str) -> None:
    assert not findings(HEADER + dedent(code), "TRAIN01")


def test_an_optimizer_from_elsewhere_is_only_likely_one() -> None:
    body = "    for x, y in loader:\n        criterion(model(x), y).backward()\n        {}.step()\n"
    (known,) = findings(HEADER + "def fit():\n" + body.format("optimizer"), "TRAIN01")
    (unknown,) = findings(HEADER + "def fit(optim):\n" + body.format("optim"), "TRAIN01")
    assert known.confidence is Confidence.CERTAIN
    assert unknown.confidence is Confidence.LIKELY


MANUAL = """
import lightning as L
import torch
from torch import nn

class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator, self.critic = nn.Linear(4, 4), nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        opt_g, opt_c = self.optimizers()
        self.toggle_optimizer(opt_c)
        loss = self.critic(self.generator(batch).detach()).mean()
        {}
        self.manual_backward(loss)
        opt_c.step()
        self.untoggle_optimizer(opt_c)
        opt_g.zero_grad()
        self.manual_backward(-self.critic(self.generator(batch)).mean())
        opt_g.step()
        self.log("loss", loss)

    def configure_optimizers(self):
        return torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(self.critic.parameters())
"""


def test_lightning_calls_a_step_with_its_own_backward_for_every_batch() -> None:
    assert not findings(MANUAL.format("opt_c.zero_grad()"), "TRAIN01")
    (finding,) = findings(MANUAL.format("pass"), "TRAIN01")
    assert "`opt_c.zero_grad()`" in finding.message
    assert "        opt_c.zero_grad()\n        self.manual_backward(loss)" in fixed(MANUAL.format("pass"), "TRAIN01")


ACCELERATED = """
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(gradient_accumulation_steps=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, [torch.ones(2, 4)] * 9)
for x in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(x).mean())
        optimizer.step()
        {}
"""


def test_accelerate_leaves_the_reset_to_the_loop() -> None:
    assert not findings(ACCELERATED.format("optimizer.zero_grad()"), "TRAIN01")
    assert len(findings(ACCELERATED.format("pass"), "TRAIN01")) == 1


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("NAMED loss.backward() optimizer.step()", "optimizer.zero_grad() loss.backward() optimizer.step()"),
        ("loss.backward() optimizer.step() NAMED", "loss.backward() optimizer.step() optimizer.zero_grad()"),
    ],
)
def test_a_reset_that_is_named_and_not_called_is_called(order: str, expected: str) -> None:
    code = """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            """ + order.replace("NAMED", "optimizer.zero_grad").replace(" ", "\n            ")
    after = fixed(HEADER + dedent(code), "TRAIN01")
    assert " ".join(after.split()).endswith(expected)


def test_a_reset_that_is_named_between_the_pass_and_the_step_is_not_called() -> None:
    code = """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for x, y in loader:
            F.mse_loss(model(x), y).backward()
            optimizer.zero_grad
            optimizer.step()
    """
    assert "optimizer.zero_grad\n" in fixed(HEADER + dedent(code), "TRAIN01")


@pytest.mark.parametrize(("made", "is_fixed"), [("", False), ("opt = torch.optim.SGD(net.parameters(), 0.1)\n", True)])
def test_an_optimizer_that_nothing_makes_is_not_used_once_more(made: str, is_fixed: bool) -> None:
    code = f"import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\n{made}for x in torch.ones(3, 2):\n"
    code += "    net(x).sum().backward()\n    opt.step()\n"
    assert len(findings(code, "TRAIN01")) == 1
    assert ("opt.zero_grad()" in fixed(code, "TRAIN01")) is is_fixed


@pytest.mark.parametrize(("reset", "count"), [("critic", 0), ("opt_c", 0), ("opt_g", 1)])
def test_a_network_that_comes_with_its_optimizer_is_reset_by_itself(reset: str, count: int) -> None:
    code = f"""
        import torch
        from critics import Critic

        def build():
            critic, generator = Critic(3), Critic(4)
            opt_c = torch.optim.Adam(critic.parameters())
            opt_g = torch.optim.Adam(generator.parameters())
            return critic, opt_c, opt_g

        def train(batches):
            critic, opt_c, opt_g = build()
            for x in batches:
                {reset}.zero_grad()
                critic(x).mean().backward()
                opt_c.step()
        """
    assert len(findings(code, "TRAIN01")) == count


@pytest.mark.parametrize(
    ("helper", "count"),
    [
        ("    return sum(p.norm() for p in model.parameters())", 1),
        ("    return other(model)", 1),
        ("    return reset(model)", 0),
        ("    for p in model.parameters():\n        p.grad = None", 0),
        ("    return model.to('cpu').prepare()", 0),
        ("    return begin(model)", 0),
        ("    return counted(model)", 1),
        ("    return between(model.parameters())", 0),
        ("    return float(len(list(model.parameters())))", 1),
    ],
)
def test_a_function_of_another_file_that_gets_the_network(tmp_path: Path, helper: str, count: int) -> None:
    others = "\n\ndef other(model):\n    return len(list(model.parameters()))\n"
    others += "\n\ndef reset(model):\n    model.zero_grad()\n"
    others += "\n\ndef between(parameters):\n    return begin(parameters=parameters)\n"
    (tmp_path / "steps.py").write_text(
        "def begin(parameters):\n    for p in parameters:\n        p.grad = None\n"
        "\ndef counted(model):\n    return len(list(model.parameters()))\n"
    )
    (tmp_path / "helpers.py").write_text(f"from steps import begin, counted\n\ndef penalty(model):\n{helper}\n{others}")
    body = "for x, y in loader:\n    (criterion(model(x), y) + penalty(model)).backward()\n    optimizer.step()\n"
    source = Source.from_text(f"from helpers import penalty\n{HEADER}{body}", tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("TRAIN01"), strict=True, project=Project())) == count


NOISY = """
import torch

class Noisy(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad.data
                p.data.add_(grad, alpha=-group["lr"])
                {last}
"""


@pytest.mark.parametrize(("last", "count"), [("pass", 1), ("p.grad = None", 0), ("p.grad.data.zero_()", 0)])
def test_an_optimizer_of_another_file(tmp_path: Path, last: str, count: int) -> None:
    (tmp_path / "noisy.py").write_text(NOISY.format(last=last))
    body = "noisy = Noisy(model.parameters(), dict(lr=0.1))\n"
    body += "for x, y in loader:\n    criterion(model(x), y).backward()\n    noisy.step()\n"
    source = Source.from_text(f"from noisy import Noisy\n{HEADER}{body}", tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("TRAIN01"), strict=True, project=Project())) == count


LOSS = """
def critic_loss(net, x):
    {first}
    return net(x).mean()
"""


@pytest.mark.parametrize(("first", "count"), [("net.zero_grad()", 0), ("net.eval()", 1)])
@pytest.mark.parametrize("loss", ["critic_loss", "partial(critic_loss)"])
def test_a_loss_that_a_trainer_is_handed_resets_the_network_it_gets(
    tmp_path: Path, first: str, loss: str, count: int
) -> None:
    (tmp_path / "losses.py").write_text(LOSS.format(first=first))
    body = f"""
        import torch
        from functools import partial
        from losses import critic_loss

        class Trainer:
            def __init__(self, net, loss, batches):
                self.net, self.loss, self.batches = net, loss, batches
                self.optimizer = torch.optim.Adam(net.parameters())

            def train(self):
                for x in self.batches:
                    loss = self.loss(self.net, x)
                    loss.backward()
                    self.optimizer.step()

        Trainer(torch.nn.Linear(2, 1), {loss}, [torch.ones(2)]).train()
        """
    source = Source.from_text(dedent(body), tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("TRAIN01"), strict=True, project=Project())) == count


RESETTING = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, x, y):
        {first}
        return (self.layer(x) - y).square().mean()
"""


@pytest.mark.parametrize(("first", "count"), [("self.zero_grad()", 0), ("self.eval()", 1)])
def test_a_network_of_another_file_that_begins_its_pass_by_a_reset(tmp_path: Path, first: str, count: int) -> None:
    (tmp_path / "nets.py").write_text(RESETTING.format(first=first))
    body = "net = Net()\nsolver = torch.optim.Adam(net.parameters())\n"
    body += "for x, y in loader:\n    net(x, y).backward()\n    solver.step()\n"
    source = Source.from_text(f"from nets import Net\n{HEADER}{body}", tmp_path / "main.py")
    assert len(lint(source, Settings.selecting("TRAIN01"), strict=True, project=Project())) == count


@pytest.mark.parametrize(
    ("registered", "count"),
    [("model.register_forward_pre_hook(clear)", 0), ("clear(model, None)", 1), ("pass", 1)],
)
def test_a_hook_of_the_model_may_reset_the_gradients(registered: str, count: int) -> None:
    code = f"""
        import torch
        from torch import nn

        def train(model: nn.Module, batches):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            def clear(module, inputs):
                optimizer.zero_grad()

            {registered}
            for x, y in batches:
                nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
    """
    assert len(findings(code, "TRAIN01")) == count
