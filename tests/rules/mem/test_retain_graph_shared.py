"""MEM04: one graph behind several passes: through `with`, of an enclosing function, of the items of one collection."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings

SCALED = """
import contextlib
import torch
from torch import nn
from torch.autograd import grad

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

@contextlib.contextmanager
def scale_loss(loss):
    yield loss * 1.0

def step(x):
    x.requires_grad = True
    score = net(x) ** 2
    loss = score.mean()
    with scale_loss(loss) as scaled:
        scaled.backward(retain_graph=True)
    {again}
    opt.step()

step(torch.randn(3, 4))
"""
SLOPE = """\
slope = grad(outputs=score.sum(), inputs=x, create_graph=True)[0]
    with scale_loss(slope.norm()) as penalty:
        penalty.backward()
"""


@pytest.mark.parametrize(("again", "count"), [(SLOPE, 0), ("print(scaled.item())", 1), ("net(x).sum().backward()", 1)])
def test_a_scaled_loss_has_the_graph_of_the_loss(again: str, count: int) -> None:
    assert len(findings(SCALED.format(again=again), "MEM04")) == count
    apex = SCALED.replace("import contextlib\n", "from apex import amp\n").replace("scale_loss(", "amp.scale_loss(")
    assert len(findings(apex.replace("def amp.", "def ").format(again=again), "MEM04")) == count


def test_what_stays_silent_needs_the_graph() -> None:
    code = SCALED.format(again=SLOPE)
    exec(code, {})
    with pytest.raises(RuntimeError, match="second time"):
        exec(code.replace("retain_graph=True", ""), {})


PRODUCT = """
import torch

def product_with_hessian(params):
    loss = sum((p ** 3).sum() for p in params)
    {outside}

    def evaluate(vector):
        {inside}
        product = torch.stack([(g * v).sum() for g, v in zip(slopes, vector)]).sum()
        return torch.autograd.grad(product, params, retain_graph=True)

    return evaluate

params = [torch.ones(2, requires_grad=True)]
evaluate = product_with_hessian(params)
for _ in range(2):
    print(evaluate([torch.ones(2)]))
"""
SLOPES = "slopes = torch.autograd.grad(loss, params, create_graph=True)"


def test_a_closure_may_go_through_the_graph_around_it_again_and_again() -> None:
    code = PRODUCT.format(outside=SLOPES, inside="pass")
    assert findings(code, "MEM04") == []
    exec(code, {"torch": torch})
    with pytest.raises(RuntimeError, match="second time"):
        exec(code.replace(", retain_graph=True", ""), {"torch": torch})


ITEMS = """
import torch
from torch import nn

class Learner:
    def __init__(self, net):
        self.net = net

    def learn(self, batches):
        for x in batches:
            out = self.net(x)
            self.losses = {{"a": out.mean(), "b": out.std()}}
            {passes}

    def each(self, batches):
        for x in batches:
            loss = self.net(x).mean()
            loss.backward(retain_graph=True)

Learner(nn.Linear(3, 3).cuda()).learn([torch.randn(2, 3)])
"""


@pytest.mark.parametrize(
    "passes",
    [
        "[loss.backward(retain_graph=True) for loss in self.losses.values()]",
        "[loss.backward(retain_graph=True) for _, loss in self.losses.items()]",
        "for loss in self.losses.values():\n                loss.backward(retain_graph=True)",
    ],
)
def test_losses_of_one_collection_may_share_a_graph(passes: str) -> None:
    code = ITEMS.format(passes=passes).lstrip()
    (own,) = findings(code, "MEM04")
    assert code.splitlines()[own.line - 2].strip() == "loss = self.net(x).mean()"


def test_a_unit_test_of_one_row_keeps_what_it_likes() -> None:
    code = (
        SCALED.format(again="print(scaled.item())")
        .replace("def step(x)", "def test_step(x)")
        .replace("\nstep(", "\n#(")
    )
    assert len(findings(code, "MEM04", path="check_net.py")) == 1
    assert findings(code, "MEM04", path="tests/test_net.py") == []


OWN_PARTS = """
import torch
from losses import make_loss
from nets import make_net

class Learner:
    def __init__(self):
        self.net, self.loss = make_net(), make_loss()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def learn(self, batches):
        for x, y in batches:
            score = self.net(x.cuda())
            loss = self.loss(score, y.cuda())
            self.optimizer.zero_grad()
            loss.backward(retain_graph=True)
            self.optimizer.step()
"""


def test_the_networks_of_an_object_are_no_graph_around_a_closure() -> None:
    assert len(findings(OWN_PARTS, "MEM04")) == 1


ADVERSARIAL = """
import torch

class Adversary:
    def __init__(self, critic: torch.nn.Module, loss):
        self.critic, self.loss = critic, loss

    def both(self, fake, label, optimizer):
        found = self.loss(self.critic(fake), label)
        found.backward(retain_graph=True)
        optimizer.step()
        return found

    def critic_alone(self, fake, label, optimizer):
        found = self.loss(self.critic(fake{cut}), label)
        found.backward()
        optimizer.step()
        return found

    def __call__(self, fake, label, optimizer, alone):
        return self.critic_alone(fake, label, optimizer) if alone else self.both(fake, label, optimizer)
"""


@pytest.mark.parametrize(("cut", "count"), [(".detach()", 0), ("", 1)])
def test_what_another_method_detaches_comes_with_a_graph(cut: str, count: int) -> None:
    assert len(findings(ADVERSARIAL.format(cut=cut), "MEM04")) == count


PENALISED = """
import torch
from torch import nn

def train(net, batches, opt, mean, device):
    {before}
    for x in batches:
        loss = net(x).mean() + {part}.sum()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()

net = nn.Linear(3, 3)
mean = torch.ones(3, requires_grad=True)
batches = torch.randn(2, 4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAINED = "train(net, batches, opt, mean, 'cpu')\n"


@pytest.mark.parametrize("before", ["part = mean ** 2", "part = mean.exp()"])
def test_a_part_of_the_loss_that_is_computed_before_the_loop_of_what_is_given(before: str) -> None:
    code = PENALISED.format(before=before, part="part")
    assert findings(code, "MEM04") == []
    exec(code + TRAINED, {})
    with pytest.raises(RuntimeError, match="second time"):
        exec(code.replace("retain_graph=True", "") + TRAINED, {})


@pytest.mark.parametrize("before", ["part = mean.to(device)", "part = torch.ones(3) * 2", "part = mean[:2]"])
def test_what_only_moves_before_the_loop_keeps_nothing_that_a_pass_lets_go(before: str) -> None:
    code = PENALISED.format(before=before, part="part")
    assert len(findings(code, "MEM04")) == 1
    exec(code.replace("retain_graph=True", "") + TRAINED, {})


TASK = """
import torch
from torch import nn

class Task(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("theta", torch.ones(n, requires_grad=True))
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        self.last = x * self.weight
        return self.last

    def output(self):
        return {output}

def train(task, optimizer, steps, every):
    total = None
    for step in range(steps):
        task(torch.ones(3))
        loss = task.output().square().sum()
        loss.backward(retain_graph=True)
        {sum}
        if step % every == 0 and total is not None:
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            total = None

task = Task(3)
train(task, torch.optim.SGD(task.parameters(), lr=0.1), 4, 2)
"""


@pytest.mark.parametrize(
    ("output", "sum_", "count"),
    [
        ("2 * self.theta", "total = loss if total is None else total + loss", 0),
        ("2 * self.theta", "print(loss.item())", 1),
        ("2 * self.last", "print(loss.item())", 0),  # what the module keeps others may go back through
    ],
)
def test_a_method_in_sight_of_a_module_is_followed_to_a_buffer_that_takes_gradients(
    output: str, sum_: str, count: int
) -> None:
    code = TASK.replace("{output}", output).replace("{sum}", sum_)
    assert len(findings(code, "MEM04")) == count
    exec(code, {})


CURVATURE = """
import torch

def curvature(x):
    y = (x ** 3).sum()
    slope = torch.autograd.grad(y, [x], create_graph={create})[0]
    flat = slope.reshape(-1) * {factor}
    rows = []
    for i in range(len(flat)):
        part = flat.index_select(0, torch.tensor([i]))
        rows.append(torch.autograd.grad([part], [x], retain_graph=True)[0])
    return torch.stack(rows)
"""


def test_gradients_that_have_a_graph_of_their_own_are_gone_through_row_by_row() -> None:
    code = CURVATURE.format(create=True, factor=2)
    assert findings(code, "MEM04") == []
    run = "curvature(torch.ones(3, requires_grad=True))"
    exec(code + run, {})
    with pytest.raises(RuntimeError, match="second time"):
        exec(code.replace("retain_graph=True", "") + run, {})


def test_what_is_computed_of_plain_gradients_has_a_graph_for_each_iteration() -> None:
    code = CURVATURE.format(create=False, factor=2).replace("[part]", "[part * x]")
    assert len(findings(code, "MEM04")) == 1


DIRECTIONS = """
import torch

def params_of(policy):
    if isinstance(policy, list):
        return params_of(policy[0])
    return [policy.logits]

def directions(policy, before, loss):
    params = {params}
    along = torch.autograd.grad([loss], params, retain_graph=True)
    kl = torch.distributions.kl_divergence(before, policy)
    away = torch.autograd.grad([-kl], params, retain_graph=True)
    return [a + b for a, b in zip(along, away)]
"""


def test_parts_that_a_helper_takes_out_of_what_is_handed_in_may_be_in_what_else_is() -> None:
    """A distribution keeps its probabilities, once they are asked for. The helper calls itself."""
    assert findings(DIRECTIONS.format(params="params_of(policy)"), "MEM04") == []
    made = "[torch.ones(3, requires_grad=True)]"
    assert len(findings(DIRECTIONS.format(params=made).replace("before, policy)", "before, params[0])"), "MEM04")) >= 1


MEASURED = """
import time
import torch

def measure(run, times):
    start = time.perf_counter()
    for _ in range(times):
        run()
    return time.perf_counter() - start

def backward_time(attention, times):
    q, k = (torch.ones(4, 4, requires_grad=True) for _ in range(2))
    {around}
    slope = torch.ones(4, 4)

    def run():
        {inside}
        out.backward(slope, retain_graph=True)

    return measure({given}, times)
"""


@pytest.mark.parametrize("given", ["run", "lambda: out.backward(slope, retain_graph=True)"])
def test_what_is_measured_goes_back_through_the_same_graph_every_time(given: str) -> None:
    code = MEASURED.format(around="out = attention(q, k)", inside="pass", given=given)
    assert findings(code, "MEM04") == []
    run = "backward_time(lambda q, k: torch.softmax(q @ k.mT, -1), 2)"
    exec(code + run, {})
    with pytest.raises(RuntimeError, match="second time"):
        exec(code.replace(", retain_graph=True", "") + run, {})


def test_what_is_computed_every_time_has_a_graph_for_each() -> None:
    [finding] = findings(MEASURED.format(around="pass", inside="out = attention(q, k)", given="run"), "MEM04")
    assert "behind `out`" in finding.message


HANDED_IN = """
import torch

def steer(fx, gx, x, opt):
    total = fx.sum()
    slope = torch.autograd.grad(total, x, retain_graph=True)[0]
    opt.zero_grad()
    (fx - gx * slope.norm()).sum().backward()
    opt.step()

def curvature(forces, positions):
    flat = forces.view(-1)

    def row(direction):
        return torch.autograd.grad(-1 * flat, positions, direction, retain_graph=True)

    return torch.vmap(row, chunk_size=1)(torch.eye(flat.shape[0]))[0]

def rows(forces, positions):
    found = []
    for force in forces.view(-1):
        found.append(torch.autograd.grad([-1 * force], [positions], retain_graph=True)[0])
    return torch.stack(found)
"""
USES = {
    "steer": "steer(x ** 2, x ** 3, x, torch.optim.SGD([x], lr=0.1))",
    "curvature": "curvature(2 * x ** 3, x)",
    "rows": "rows(2 * x ** 3, x)",
}


def test_what_is_computed_of_a_tensor_that_is_handed_in_shares_its_graph() -> None:
    """By a name of its own, by one of an enclosing function, or as one of its elements."""
    assert findings(HANDED_IN, "MEM04") == []


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_such_graphs_are_gone_through_again(use: str) -> None:
    start = "\nx = torch.ones(3, requires_grad=True)\n"
    exec(HANDED_IN + start + use, {})
    with pytest.raises(RuntimeError, match="second time"):
        exec(HANDED_IN.replace(", retain_graph=True", "") + start + use, {})


def test_what_a_function_computes_of_its_inputs_is_its_own_graph() -> None:
    code = """
    import torch

    def force(net, positions):
        energy = net(positions)
        total = energy.sum()
        return torch.autograd.grad(total, positions, retain_graph=True)[0]
    """
    assert len(findings(code, "MEM04")) == 1


REPEATED = """
import torch

def jacobian(output, inputs, direction):
    rows = []
    for i in range(len(direction)):
        {inside}
        {given}.backward(direction, retain_graph=True)
        rows.append(inputs.grad)
    return rows
"""


@pytest.mark.parametrize(
    ("inside", "given", "count"),
    [("pass", "output", 0), ("pass", "output.to(direction.device)", 0), ("output = inputs.exp()", "output", 1)],
)
def test_a_loop_goes_again_and_again_through_what_its_function_got(inside: str, given: str, count: int) -> None:
    assert len(findings(REPEATED.format(inside=inside, given=given), "MEM04")) == count


ROOT = """
import torch

class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, f, x, *phi):
        ctx.f = f
        ctx.save_for_backward(x, *phi)
        return x

    @staticmethod
    def backward(ctx, slope):
        {function}
        x, *phi = ctx.saved_tensors
        with torch.enable_grad():
            y = f(x.detach())
        return (None, None, *torch.autograd.grad(y, phi, slope, retain_graph=True))
"""


@pytest.mark.parametrize(("function", "count"), [("f = ctx.f", 0), ("f = torch.nn.Linear(3, 1)", 1)])
def test_a_function_that_was_handed_in_may_hold_a_part_of_the_graph(function: str, count: int) -> None:
    code = ROOT.format(function=function)
    assert len(findings(code, "MEM04")) == count


def test_a_function_that_holds_a_part_of_the_graph_needs_it() -> None:
    code = (
        ROOT.format(function="f = ctx.f")
        + """
w = torch.ones(3, requires_grad=True)
scale = w.exp()
Root.apply(lambda x: (scale * x).sum(), torch.ones(()), w).backward()
scale.sum().backward()
"""
    )
    exec(code, {})
    with pytest.raises(RuntimeError, match="second time"):
        exec(code.replace(", retain_graph=True", ""), {})
