"""MEM05: passes that need gradients on the way to their results."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.mem.projects import linted
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

ENERGY = """
import torch
from torch import nn
import solvers


class Unrolled(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Linear(4, 1)

    def forward(self, x):
        y = torch.zeros(len(x), 4)
        inner_opt = solvers.unroll(torch.optim.SGD([y.requires_grad_()], lr=0.1))
        energy = self.energy(x + y)
        inner_opt.step({given})
        return y


def evaluate(model, batches):
    model.eval()
    for x in batches:
        print(model(x).mean().item())


evaluate(Unrolled(), [torch.randn(2, 4)])
"""


@pytest.mark.parametrize(("given", "count"), [("energy.sum()", 0), ("", 1)])
def test_an_optimizer_that_is_given_a_loss_takes_its_gradients(given: str, count: int) -> None:
    assert len(findings(ENERGY.format(given=given), "MEM05")) == count


AGENT = """
import torch
from torch import nn
import agents


class Judge(agents.Base):
    def __init__(self, net: nn.Module):
        self.net = net
        self.net_optim = self.make_optimizer(net)

    @torch.no_grad()
    def reward(self, batch):
        return self.judge(batch).mean().item()

    def judge(self, batch):
        return self.net(torch.cat(list(batch), 1))

    def learn(self, batches):
        for batch in batches:
            loss = -self.judge(batch).mean()
            self.net_optim.step({given})
            print(loss.item())
"""


@pytest.mark.parametrize(("given", "count"), [("loss", 0), ("", 1)])
def test_what_is_given_to_the_step_of_an_optimizer_is_sent_backward(given: str, count: int) -> None:
    assert len(findings(AGENT.format(given=given), "MEM05")) == count


FIELD = """
    import torch

    class Field(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(3, 1)

        def slope(self, x):
            x.requires_grad_(True)
            return {slope}

        def forward(self, x):
            return self.net(x)
    """
RENDERER = """
    import torch

    class Renderer:
        def __init__(self, field_network):
            self.field_network = field_network

        def render(self, rays):
            colours = self.shade(self.field_network, rays)
            return colours.clamp(0, 1)

        def shade(self, field_network, rays):
            return torch.sigmoid(field_network(rays)) * field_network.slope(rays)
    """
RUNNER = """
    import torch
    from field import Field
    from renderer import Renderer

    class Runner:
        def __init__(self):
            self.field = Field().eval()
            self.renderer = Renderer(self.field)

        def validate(self, batches):
            for rays in batches:
                print(self.renderer.render(rays).detach().cpu().numpy())
    """


@pytest.mark.parametrize(
    ("slope", "count"), [("torch.autograd.grad(self.net(x).sum(), x)[0]", 0), ("self.net(x)  # no backward()", 1)]
)
def test_a_renderer_asks_the_field_that_it_is_given_for_gradients(tmp_path: Path, slope: str, count: int) -> None:
    files = {"field": FIELD.format(slope=slope), "renderer": RENDERER, "main": RUNNER}
    assert len(linted(tmp_path, **files)) == count


CHOSEN = """
    import torch
    from tools import get_class

    def evaluate(options, batches):
        model = {made}
        model.load_state_dict(torch.load(options.path, weights_only=True))
        model.eval()
        for x in batches:
            print(model({given}).mean().item())
    """
SURFACE = """
    import torch

    class Surface(torch.nn.Module):
        def forward(self, x):
            return torch.autograd.grad(x.square().sum(), x)[0]
    """


@pytest.mark.parametrize(
    ("made", "given", "count"),
    [
        ("get_class(options.name)(options)", "x", 0),
        ("get_class(options.name)(options)", "x, x", 1),
        ("torch.nn.Linear(3, 1)", "x", 1),
    ],
)
def test_a_network_that_a_setting_names_may_be_one_that_takes_gradients(
    tmp_path: Path, made: str, given: str, count: int
) -> None:
    assert len(linted(tmp_path, surface=SURFACE, main=CHOSEN.format(made=made, given=given))) == count


@pytest.mark.parametrize(("more", "count"), [("y", 1), ("y=None", 0)])
def test_a_network_that_needs_more_than_it_is_given_is_not_the_one(tmp_path: Path, more: str, count: int) -> None:
    surface = SURFACE.replace("self, x", f"self, x, {more}")
    main = CHOSEN.format(made="get_class(options.name)(options)", given="x")
    assert len(linted(tmp_path, surface=surface, main=main)) == count


@pytest.mark.parametrize(("folder", "count"), [("fields", 0), ("other", 1)])
def test_of_a_repository_of_many_files_those_near_by_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, count: int
) -> None:
    monkeypatch.setattr("torchlint.semantics.nearby._MOST_FILES", 3)
    for at in range(4):
        (tmp_path / f"part_{at}.py").write_text("import torch\n")
    for name in ("fields", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / folder / "surface.py").write_text(dedent(SURFACE))
    path = tmp_path / "fields" / "main.py"
    path.write_text(dedent(CHOSEN.format(made="get_class(options.name)(options)", given="x")))
    (tmp_path / "pyproject.toml").touch()
    found = lint(Source.read(path), Settings.selecting("MEM05"), strict=True, project=Project())
    assert len(found) == count


ATTACKED = """
import torch
from torch import nn


class Attacked:
    def __init__(self, net: nn.Module):
        self.net = net.eval()

    def predict(self, images):
        scores = []
        for image in images:
            scores.append(self.net(image.clamp(0, 1)))
        return scores

    def gradient(self, loss):
        {gradient}
"""


@pytest.mark.parametrize(("gradient", "count"), [("loss.backward()", 0), ("return loss.item()", 1)])
def test_a_wrapper_that_sends_back_what_others_make_of_its_predictions(gradient: str, count: int) -> None:
    assert len(findings(ATTACKED.format(gradient=gradient), "MEM05")) == count


LEARNING = """
    def fit(self, images):
        for image in images:
            self.gradient(self.net(image).mean())
"""


def test_a_class_that_sends_back_only_losses_of_its_own_takes_none_of_what_it_predicts() -> None:
    assert len(findings(ATTACKED.format(gradient="loss.backward()") + LEARNING, "MEM05")) == 1


DERIVATIVES = """
    import torch

    def laplacian(y, x):
        return {taken}

    class Residual:
        def __init__(self, operator, model):
            self.operator, self.model = operator, model

        def __call__(self, x):
            return self.operator(self.model(x), x)
    """
RESIDUALS = """
    import derivatives
    import torch

    def equation(y, x):
        return derivatives.laplacian(y, x) - 1

    net = torch.nn.Linear(2, 1)
    net.load_state_dict(torch.load("net.pt", weights_only=True))
    residual = derivatives.Residual(equation, model=net)

    def error(points):
        net.eval()
        worst = 0
        for x in points:
            worst = max(worst, residual(x).detach().abs().max().item())
        return worst

    print(error([torch.ones(3, 2)]))
    """


@pytest.mark.parametrize(
    ("taken", "count"), [("torch.autograd.grad(y.sum(), x)[0]", 0), ("y[1:] - x[1:]  # a backward() difference", 1)]
)
def test_an_object_that_is_made_with_a_function_that_takes_gradients(tmp_path: Path, taken: str, count: int) -> None:
    files = {"derivatives": DERIVATIVES.format(taken=taken), "main": RESIDUALS}
    assert len(linted(tmp_path, **files)) == count


EQUATION = """
import torch
from torch import nn


class Solution(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def slope(self, t):
        t.requires_grad_()
        y = self.layer(t)
        return {slope}

    def residual(self, t):
        return self.slope(t) + self.layer(t)
"""
VALIDATED = """
import torch


def validate(model: torch.nn.Module, loader):
    model.eval()
    total = 0.0
    for data in loader:
        t = data["t"].cuda()
        total += model.residual(t).square().mean().item()
    return total
"""


@pytest.mark.parametrize(
    ("slope", "count"), [("torch.autograd.grad(y, t, torch.ones_like(t), create_graph=True)[0]", 0), ("y / t", 1)]
)
def test_a_method_that_takes_derivatives_where_the_project_has_it(tmp_path: Path, slope: str, count: int) -> None:
    assert len(linted(tmp_path, equation=EQUATION.format(slope=slope), main=VALIDATED)) == count


def test_what_is_no_network_says_nothing_of_one_that_is_out_of_sight(tmp_path: Path) -> None:
    equation = EQUATION.format(slope="torch.autograd.grad(y, t, torch.ones_like(t))[0]")
    assert len(linted(tmp_path, equation=equation.replace("(nn.Module)", ""), main=VALIDATED)) == 1


CHANGED = """
    import torch
    from torch import nn

    def changed(batch, target, net: nn.Module, {name}=None):
        if {name} is None:
            return batch
        net.eval()
        {name}.eval()
        aim = torch.where(net(batch).argmax(1) == 3, target * 2, target)
        return {name}(batch.cuda(), aim.cuda())

    def validate(loader, net: nn.Module, {name}: nn.Module):
        errors = []
        for batch, target in loader:
            batch, target = batch.cuda(), target.cuda()
            other = changed(batch, target, net, {name})
            with torch.no_grad():
                errors.append((net(other) - target).abs().mean().item())
        return errors
"""


@pytest.mark.parametrize(
    ("name", "line"), [("attacker", 9), ("attack_model", 9), ("denoiser", 4)]
)  # the other pass, the whole function
def test_a_module_that_is_named_for_an_attack_takes_gradients(name: str, line: int) -> None:
    found = findings(CHANGED.format(name=name), "MEM05")
    assert [each.line for each in found] == [line]


@pytest.mark.parametrize(("points", "count"), [("z", 0), ("z.detach()", 1)])
def test_a_flow_is_trained_through_the_points_of_a_density(points: str, count: int) -> None:
    code = f"""\
    import torch
    from torch import distributions

    def fit(flow: torch.nn.Linear, y, optimizer):
        def cross_entropy(x, flow):
            z = flow(x)
            base = distributions.Normal(torch.zeros(z.shape), torch.ones(z.shape))
            return -base.log_prob({points}).mean()

        for _ in range(10):
            loss = cross_entropy(y, flow) + flow.weight.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    assert len(findings(dedent(code), "MEM05", "MEM09")) == count
