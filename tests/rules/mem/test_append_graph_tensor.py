"""MEM01: a list, deque or dict keeps the autograd graph of every step."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
import torch

from tests.rules.mem.appended_tensors import SETUP, VARIANTS
from tests.rules.mem.containers_without_graphs import LOOK_ALIKES
from tests.support import findings, fixed, marked, source_of
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "MEM01")]


REWRITES = {
    "a name": ("losses.append(loss)", "losses.append(loss.detach())"),
    "a quotient": ("losses.append(loss / k)  # mean", "losses.append(loss.detach() / k)  # mean"),
    "a product": ("losses.append(loss * x.size(0))", "losses.append(loss.detach() * x.size(0))"),
    "a sum of two that carry": ("losses.append(loss + reg)", "losses.append((loss + reg).detach())"),
    "a list display": ("losses += [loss]", "losses += [loss.detach()]"),
    "a longer list": ("losses = losses + [loss]", "losses = losses + [loss.detach()]"),
    "a tuple": ("losses.append((step, loss))", "losses.append((step, loss.detach()))"),
    "a dict": (
        'losses.append({"step": step, "loss": loss, "reg": reg})',
        'losses.append({"step": step, "loss": loss.detach(), "reg": reg.detach()})',
    ),
    "a call": ("losses.append(crit(model(x), y))", "losses.append(crit(model(x), y).detach())"),
    "a metric": ("losses.append((out - y).abs().mean())", "losses.append((out.detach() - y).abs().mean())"),
    "several lines": (
        "losses.append(  # keep\n        loss,  # of this step\n    )",
        "losses.append(  # keep\n        loss.detach(),  # of this step\n    )",
    ),
    "a comprehension": (
        "losses.extend([crit(model(a), b) for a, b in loader])",
        "losses.extend([crit(model(a), b).detach() for a, b in loader])",
    ),
}

FIX_FRAME = """\
losses = []
for step, (x, y) in enumerate(loader):
    opt.zero_grad()
    out = model(x)
    loss = crit(out, y)
    reg = out.pow(2).mean()
    (loss + reg).backward()
    opt.step()
    @
print(losses)
"""


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds(code: str) -> None:
    assert found(code) == marked(code)


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert found(code) == []


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    code = SETUP + FIX_FRAME.replace("@", before)
    assert fixed(code, "MEM01", unsafe=False) == SETUP + FIX_FRAME.replace("@", after)


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_same_numbers(before: str, after: str) -> None:
    outcomes = []
    for code in (
        SETUP + FIX_FRAME.replace("@", before),
        fixed(SETUP + FIX_FRAME.replace("@", before), "MEM01", unsafe=False),
    ):
        names: dict[str, object] = {}
        exec(code, names)
        outcomes.append((names["losses"], [p.detach() for p in names["model"].parameters()]))  # type: ignore[attr-defined]
    assert same(*outcomes)


def same(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_fixed_code_has_no_finding(variant: str) -> None:
    assert findings(fixed(SETUP + variant, "MEM01", unsafe=False), "MEM01") == []


def test_what_is_not_known_to_be_one_tensor_is_reported_and_left_alone() -> None:
    code = (
        SETUP
        + """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        h = self.fc(x)
        return h, h.pow(2)

net = Net()
outs = []
for x, y in loader:
    out = net(x)
    crit(out[0], y).backward()
    outs.append(out)
print(len(outs))
"""
    )
    assert len(findings(code, "MEM01")) == 1
    assert fixed(code, "MEM01", unsafe=False) == code


def test_message_says_what_is_kept() -> None:
    code = SETUP + VARIANTS["after backward"]
    message = findings(code, "MEM01")[0].message
    assert "losses" in message
    assert "loss" in message


@pytest.mark.parametrize(("first", "is_fixed"), [("out", False), ("out.detach()", True)])
def test_no_fix_that_leaves_the_first_of_the_joined_tensors_its_graph(first: str, is_fixed: bool) -> None:
    code = f"""\
for step, (x, y) in enumerate(loader):
    out = model(x)
    if step == 0:
        joined = {first}
    else:
        joined = torch.cat((joined, out))
print(joined.argmax().item())
"""
    (finding,) = findings(SETUP + code, "MEM01")
    assert (finding.fix is not None) is is_fixed


OF_ONE_STEP = """def update(model, users, opt):
    losses = []
    for x, y in users:
        loss = crit(model(x), y)
        loss.backward()
        losses.append(loss)
        @
    !
    return torch.stack(losses).mean()
"""


@pytest.mark.parametrize(
    ("inside", "behind", "count"),
    [("pass", "opt.step()", 0), ("opt.step()", "pass", 1), ("pass", "pass", 1)],
    ids=["one update for all", "an update for each", "no update in sight"],
)
def test_the_losses_of_one_update_go_with_it(inside: str, behind: str, count: int) -> None:
    assert len(found(OF_ONE_STEP.replace("@", inside).replace("!", behind))) == count


FILTER = """
    import torch
    from networks import Gain

    class Filter:
        def __init__(self, start):
            self.start = start
            self.gain = Gain(4)
            self.reset(True)

        def reset(self, clean):
            self.state = self.start.detach().clone()
            if clean:
                self.history = self.start.detach().clone()
            self.history = torch.cat((self.history, self.state), dim=1)

        def step(self, y):
            after = self.state + self.gain(y) @ y
            self.state = after.detach().clone()
            self.history = torch.cat((self.history, after.clone()), dim=1)
"""
NETWORKS = """
    from torch import nn

    class Gain(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.linear = nn.Linear(size, size)

        def forward(self, y):
            return self.linear(y)
"""
TRAINER = """
    from filters import Filter

    def train(start, loader, optimizer):
        filter = Filter(start)
        for observations, states in loader:
            for y in observations:
                filter.step(y)
            loss = (filter.{read} - states).square().mean()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(("read", "count"), [("history", 0), ("estimate", 1)])
def test_an_attribute_that_grows_and_that_another_file_trains_on(read: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(dedent(TRAINER.format(read=read)))
    (tmp_path / "networks.py").write_text(dedent(NETWORKS))
    source = source_of(FILTER, str(tmp_path / "filters.py"))
    Path(source.path).write_text(source.text)
    assert len(lint(source, Settings.selecting("MEM01"), strict=True, project=Project())) == count


ROLLOUT = """\
import torch


def collect(model, states, train):
    log_probs, values, entropy = [], [], 0.0
    for state in states:
        dist, value = model(state)
        action = dist.sample()
        log_prob = dist.log_prob(action)
        log_probs.append(log_prob)
        entropy += dist.entropy().mean()
        {}
    log_probs = torch.cat(log_probs).detach()
    print(entropy)
    return train(log_probs{})
"""


@pytest.mark.parametrize(
    ("beside", "behind", "is_fixed"),
    [
        ("values.append(value)", ", torch.cat(values)", False),
        ("values.append(value.detach())", ", torch.cat(values)", True),
        ("values.append(value.item())", "", True),
        ("values.append(action)", ", torch.cat(values)", True),
    ],
)
def test_one_list_is_not_detached_where_another_keeps_the_graph_of_the_same_pass(
    beside: str, behind: str, is_fixed: bool
) -> None:
    code = ROLLOUT.format(beside, behind)
    assert findings(code, "MEM01")
    after = fixed(code, "MEM01")
    assert ("log_prob.detach()" in after) is is_fixed


@pytest.mark.parametrize(("use", "count"), [("x[best]", 0), ("x * best", 1)])
def test_what_picks_rows_has_no_graph(use: str, count: int) -> None:
    code = f"""
        import torch

        def shrink(net: torch.nn.Module, batches):
            kept = []
            for x in batches:
                scores, best = net(x)
                print(({use}).mean().item())
                kept.append(best)
            print([each.sum().item() for each in kept])
        """
    assert len(findings(code, "MEM01")) == count


HANDED_BACK = """
from {package} import {base}
import torch

class Task({base}):
    def __init__(self):
        super().__init__()
        self.seen = []

    def {method}(self, {given}):
        loss = self.{network}(x).square().mean()
        self.seen.append(loss)
        return {returned}

    def on_train_epoch_end(self):
        self.log("seen", torch.stack(self.seen).mean())
        self.seen.clear()
"""
LIGHTNING = {"package": "lightning", "base": "LightningModule", "network": "net"}
TRANSFORMERS = {"package": "transformers", "base": "Trainer", "network": "model"}


@pytest.mark.parametrize(
    ("framework", "method", "returned", "count"),
    [
        (LIGHTNING, "training_step", "loss", 1),
        (LIGHTNING, "training_step", "{'loss': loss}", 1),
        (LIGHTNING, "training_step", "None", 0),  # nobody frees the graph that is kept, perhaps for a pass later on
        (LIGHTNING, "validation_step", "loss", 0),  # which runs without a graph
        (LIGHTNING, "shared_step", "loss", 0),
        (TRANSFORMERS, "compute_loss", "loss", 1),
    ],
)
def test_a_framework_frees_the_graph_of_the_loss_that_it_is_handed(
    framework: dict[str, str], method: str, returned: str, count: int
) -> None:
    given = "x, index" if framework is LIGHTNING else "model, x"
    code = HANDED_BACK.format(**framework, method=method, given=given, returned=returned)
    assert len(findings(code, "MEM01")) == count
