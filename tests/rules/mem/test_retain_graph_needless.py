"""MEM04: backward passes that keep a graph which nothing uses again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

STATEFUL = """
import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.h = None

    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h.sum()


def train(batches):
    model = Tracker()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches:
        optimizer.zero_grad()
        loss = model(x)
        loss.backward(retain_graph=True)
        optimizer.step()
"""


def test_a_module_that_keeps_its_state_needs_the_graph_of_the_last_step() -> None:
    assert findings(STATEFUL, "MEM04") == []


def test_it_does_so_in_a_project_as_well(tmp_path: Path) -> None:
    (tmp_path / "tracker.py").write_text(STATEFUL)
    source = Source.read(tmp_path / "tracker.py")
    assert lint(source, Settings.selecting("MEM04"), strict=True, project=Project()) == []


GIVEN_STATE = """
import torch.nn.functional as F


def train(model, batches, optimizer):
    for batch in batches:
        model.{attribute} = start()
        optimizer.zero_grad()
        for x, y in batch:
            {place}
            loss = F.cross_entropy(model(x), y)
            loss.backward(retain_graph=True)
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("attribute", "place", "found"),
    [("hidden", "pass", 0), ("hidden", "model.hidden = model.hidden.detach()", 1), ("scale", "pass", 1)],
)
def test_a_module_that_is_given_a_state_hands_it_from_pass_to_pass(attribute: str, place: str, found: int) -> None:
    code = GIVEN_STATE.format(attribute=attribute, place=place)
    assert len(findings(code, "MEM04")) == found


TRUNCATED = """
import torch
from torch import nn

model = nn.LSTM(4, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def repackage(state):
    return tuple(part{} for part in state)


def train(batches, state):
    for x in batches:
        state = repackage(state)
        optimizer.zero_grad()
        output, state = model(x, state)
        output.sum().backward(retain_graph=True)
        optimizer.step()
"""


def test_a_state_that_is_detached_part_by_part_brings_no_graph() -> None:
    assert len(findings(TRUNCATED.format(".detach()"), "MEM04")) == 1
    assert findings(TRUNCATED.format(""), "MEM04") == []


CLOSURE = """
import torch
from torch import nn

model = nn.Linear(4, 1)
solver = torch.optim.LBFGS(model.parameters())


def fit(x):
    def closure():
        solver.zero_grad()
        loss = model(x).square().mean()
        loss.backward(retain_graph=True)
        return loss

    for _ in range(20):
        loss = solver.step({})
        {}
"""


def test_an_optimizer_reads_only_the_number_that_its_closure_returns() -> None:
    assert len(findings(CLOSURE.format("closure", "print(loss)"), "MEM04")) == 1
    assert findings(CLOSURE.format("lambda: closure()", "closure().backward()"), "MEM04") == []


def test_the_closure_may_be_called_for_an_optimizer_that_takes_none() -> None:
    assert len(findings(CLOSURE.format("closure", "total = closure(); print(total.item())"), "MEM04")) == 1
    assert findings(CLOSURE.format("closure", "closure().backward()"), "MEM04") == []
    assert findings(CLOSURE.format("closure", "keep(closure())"), "MEM04") == []
    assert findings(CLOSURE.format("closure", "keep(closure)"), "MEM04") == []


TWICE = """
import torch
from torch import nn


def train(model, batches, optimizer):
    for x in batches:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward(retain_graph=True){comment}
        optimizer.step()
"""


def test_a_graph_that_a_comment_speaks_of_is_left_to_the_reader() -> None:
    plain = TWICE.format(comment="  # as ever")
    assert "loss.backward()  # as ever" in fixed(plain, "MEM04")
    told = TWICE.format(comment="  # the generator reuses it")
    assert fixed(told, "MEM04") == told.removeprefix("\n")
    above = plain.replace("        loss.b", "        # keep the graph\n        loss.b")
    assert fixed(above, "MEM04") == above.removeprefix("\n")


def test_a_script_that_goes_back_once_and_one_that_does_so_again() -> None:
    script = """
        import torch

        net = torch.nn.Linear(4, 3)
        scores = net(torch.randn(1, 4))
        scores.backward(torch.ones(1, 3), retain_graph=True)
        print(net.weight.grad)
        """
    again = script + "scores.sum().backward()\n        "
    assert [finding.line for finding in findings(script, "MEM04")] == [5]
    assert findings(again, "MEM04") == []
    assert "retain_graph" not in fixed(script, "MEM04")


HANDED_IN = """
import torch
from torch import nn

net = nn.Linear(4, 4)
first, second = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def update(loss):
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()


for x in batches:
    {body}
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("update(first(net(x)).sum())", 1),
        ("a, b = first(net(x)).sum(), second(net(x)).sum()\n    update(a)\n    print(b)", 1),
        ("features = net(x)\n    update(first(features).sum())\n    second(features).sum().backward()", 0),
        ("loss = loss + first(net(x)).sum()\n    update(loss)", 0),
    ],
)
def test_a_loss_that_is_handed_in_ends_with_what_its_callers_do(body: str, count: int) -> None:
    assert len(findings(HANDED_IN.format(body=body), "MEM04")) == count


TIMED = """
import torch
import torch.utils.benchmark as benchmark


def backward_time(function, x):
    out = function(x)
    slope = torch.randn_like(out)

    def go_back(out, grad_out):
        x.grad = None
        out.backward(grad_out, retain_graph=True)

    {use}
"""


@pytest.mark.parametrize(
    ("use", "count"),
    [
        ("timer = benchmark.Timer('run(a, b)', globals={'run': go_back, 'a': out, 'b': slope})", 0),
        ("go_back(out, slope)", 1),
    ],
    ids=["handed to a timer", "called once"],
)
def test_a_function_that_is_handed_on_may_be_given_the_same_graph_again(use: str, count: int) -> None:
    assert len(findings(TIMED.format(use=use), "MEM04")) == count


LANGEVIN = """
import torch


def refine(energy, x, y, steps):
    point = x.clone().requires_grad_()
    {before}
    for _ in range(steps):
        slope = torch.autograd.grad({outputs}, [point], retain_graph=True{more})[0]
        point.data += 0.1 * slope
        {after}
    return point.detach()
"""


@pytest.mark.parametrize(
    ("before", "outputs", "more", "after", "count"),
    [
        ("", "energy(point, y).sum()", "", "", 1),
        ("", "energy(point, y).sum()", ", create_graph=True", "slope.norm().backward()", 0),
        ("features = point.exp()", "energy(features, y).sum()", "", "", 0),
        ("total = energy(point, y).sum()", "total", "", "", 0),
        ("", "(score := energy(point, y).sum())", "", "score.backward()", 0),
    ],
)
def test_a_gradient_of_what_is_computed_on_the_spot(
    before: str, outputs: str, more: str, after: str, count: int
) -> None:
    code = LANGEVIN.format(before=before, outputs=outputs, more=more, after=after)
    assert len(findings(code, "MEM04")) == count
    assert (fixed(code, "MEM04").count("retain_graph") == 0) is bool(count)


def test_the_gradient_is_the_same_without_it() -> None:
    code = LANGEVIN.format(before="", outputs="energy(point, y).sum()", more="", after="")
    x, y = torch.linspace(-1, 1, 12).view(3, 4), torch.arange(3)
    found = []
    for text in (code, fixed(code, "MEM04")):
        scope: dict[str, Any] = {}
        exec(text, scope)
        found.append(scope["refine"](lambda point, labels: point.sin().pow(2) * labels[:, None], x, y, 5))
    assert torch.equal(*found)
    assert not torch.equal(found[0], x)


HANDED_TO_GRADIENT = """
import torch


def product(gradient, vector, params):
    return torch.autograd.grad({}, params, grad_outputs=vector, retain_graph=True)[0].detach()


def solve(network, vector, params, x):
    {}
    for _ in range(10):
        vector = vector + product({}, vector, params)
    return vector
"""


def test_a_gradient_of_what_came_in_is_left_to_those_who_have_it() -> None:
    before = "first = torch.autograd.grad(network(x).sum(), params, create_graph=True)[0]"
    assert findings(HANDED_TO_GRADIENT.format("gradient", before, "first"), "MEM04") == []
    assert findings(HANDED_TO_GRADIENT.format("2 * gradient", before, "first"), "MEM04") == []


PARTS = """
import torch
from torch.autograd import grad


def gradients(solver, given, y):
    c = torch.Tensor(given).requires_grad_()
    x, u = solver(10)(c)
    u = u.view(-1)
    rows = []
    for {loop}:
        row = grad({part}, [c], retain_graph=True)[0].view(-1)
        rows.append(row)
    return rows
"""


@pytest.mark.parametrize(
    ("loop", "part", "count"),
    [
        pytest.param("i in range(len(u))", "u[i]", 0, id="a part of what was there"),
        pytest.param("each in u", "each.sum()", 0, id="each part of what was there"),
        pytest.param("i in range(9)", "solver(c, i).sum()", 1, id="something new"),
    ],
)
def test_parts_of_one_tensor_share_its_graph(loop: str, part: str, count: int) -> None:
    assert len(findings(PARTS.format(loop=loop, part=part), "MEM04")) == count


EACH_BATCH = """
import torch
import torch.nn.functional as F


def train(net, batches, registry, scaler: torch.amp.GradScaler):
    y = torch.zeros(4)
    meter = registry.build()
    criterion = torch.nn.MSELoss()
    for x in batches:
        {}.backward(retain_graph=True)
"""


@pytest.mark.parametrize(
    "loss",
    [
        "F.mse_loss(net(x), y)",
        "criterion(net(x), y)",
        "meter.loss(net(x), y)",
        "scaler.scale(net(x).sum())",
        "net(x).sum()",
    ],
)
def test_what_is_called_may_be_there_before_the_loop_if_it_is_given_something_new(loss: str) -> None:
    assert len(findings(EACH_BATCH.format(loss), "MEM04")) == 1


@pytest.mark.parametrize(("flag", "count"), [("True", 1), ("keep", 0)], ids=["said here", "asked for by the callers"])
def test_a_graph_that_the_callers_ask_for_is_kept_for_them(flag: str, count: int) -> None:
    code = f"""
    import torch

    def backward(loss, keep=False):
        loss.backward(retain_graph={flag})

    def step(model, x, optimizer):
        for part in x:
            loss = model(part).square().mean()
            backward(loss, keep=True)
            optimizer.step()
            optimizer.zero_grad()
    """
    assert len(findings(code, "MEM04")) == count


ENCODER = """
import torch
from torch import nn
from nets import Encoder

class Agent:
    def __init__(self):
        self.encoder, self.critic = Encoder(), nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.encoder.parameters())

    def train(self, context, x):
        z = self.encoder(context)
        prior = {prior}
        self.optimizer.zero_grad()
        prior.backward(retain_graph=True)
        loss = self.critic({given}).mean()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("prior", "given", "count"),
    [
        ("self.encoder.kl_divergence()", "self.encoder.z", 0),
        ("self.critic(context).mean()", "self.encoder(x)", 1),
    ],
)
def test_what_a_module_computes_of_what_it_keeps_may_share_a_graph(prior: str, given: str, count: int) -> None:
    code = ENCODER.format(prior=prior, given=given).replace("from nets import Encoder", "Encoder = nn.Flatten")
    assert len(findings(code, "MEM04")) == count


TWO_PASSES = """
import torch

class Clipped:
    def __init__(self, module, optimizer, {name}):
        self.module, self.optimizer = module, optimizer
        self.{name} = {name}

    def backward(self):
        reduced = torch.mean({used})
        reduced.backward(retain_graph=True)
        self.optimizer.zero_grad()
        second = torch.sum(self.module.coefficients() * self.{name})
        second.backward()
"""


@pytest.mark.parametrize(
    ("name", "used", "count"),
    [
        ("losses", "self.losses", 0),  # both passes go through what the object was handed
        ("inputs", "self.inputs * self.module.weight", 1),
    ],
)
def test_an_object_may_have_been_handed_a_loss_with_its_graph(name: str, used: str, count: int) -> None:
    assert len(findings(TWO_PASSES.format(name=name, used=used), "MEM04")) == count


@pytest.mark.parametrize(("name", "used", "count"), [("losses", "self.losses", 0), ("inputs", "self.module.loss()", 1)])
def test_so_may_a_base_in_another_file(name: str, used: str, count: int) -> None:
    code = TWO_PASSES.format(name=name, used=used).replace(
        "class Clipped:", "from far import Base\n\nclass Clipped(Base):"
    )
    code = code.replace(f"        self.{name} = {name}\n", "")
    assert len(findings(code, "MEM04")) == count


@pytest.mark.parametrize(("name", "count"), [("loss", 1), ("grad_loss", 1)])
def test_a_loss_of_gradients_is_a_loss(name: str, count: int) -> None:
    code = f"""
        import torch
        from torch import nn

        def train(engine, net: nn.Module, loader):
            for x, y in loader:
                {name} = nn.functional.mse_loss(net(x), y)
                engine.backward({name}, retain_graph=True)
                engine.step()
    """
    assert len(findings(code, "MEM04")) == count
