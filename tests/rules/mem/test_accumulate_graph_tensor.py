"""MEM02: a running sum keeps the autograd graph of every step."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.rules.mem.accumulated_tensors import SETUP, VARIANTS
from tests.rules.mem.projects import linted
from tests.rules.mem.sums_without_graphs import LOOK_ALIKES
from tests.support import findings, fixed, marked


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "MEM02")]


REWRITES = {
    "a name": ("total += loss  # epoch", "total += loss.detach()  # epoch"),
    "weighted by a number": ("total += loss * x.size(0)", "total += loss.detach() * x.size(0)"),
    "spelled out": ("total = total + loss / len(loader)", "total = total + loss.detach() / len(loader)"),
    "a moving average": ("total = 0.98 * total + 0.02 * loss", "total = 0.98 * total + 0.02 * loss.detach()"),
    "a moving average with the rest of a weight": (
        "total = 0.9 * total + (1 - 0.9) * loss",
        "total = 0.9 * total + (1 - 0.9) * loss.detach()",
    ),
    "beside a count": ("total, step = total + loss, step + 1", "total, step = total + loss.detach(), step + 1"),
    "a moving average that begins with the first": (
        "total = loss if step == 0 else 0.9 * total + 0.1 * loss",
        "total = loss.detach() if step == 0 else 0.9 * total + 0.1 * loss.detach()",
    ),
    "a sum that begins in a branch of its own": (
        "if step == 0:\n        total = loss * 1.0\n    else:\n        total = total + loss",
        "if step == 0:\n        total = loss.detach() * 1.0\n    else:\n        total = total + loss.detach()",
    ),
    "a sum": ("total += loss + reg", "total += (loss + reg).detach()"),
    "a metric": ("total += (pred - y).abs().mean()", "total += (pred.detach() - y).abs().mean()"),
    "a call": ("total += crit(model(x), y)", "total += crit(model(x), y).detach()"),
    "parentheses": ("total += (\n        loss\n    )", "total += (\n        loss\n    ).detach()"),
}


FIX_FRAME = """\
total = 0.0
for step, (x, y) in enumerate(loader):
    opt.zero_grad()
    pred = model(x)
    loss = crit(pred, y)
    reg = pred.pow(2).mean()
    (loss + reg).backward()
    opt.step()
    @
print(total)
"""


def outcome(code: str) -> list[torch.Tensor]:
    names: dict[str, object] = {}
    exec(code, names)
    return [names["total"].detach(), *(p.detach() for p in names["model"].parameters())]  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds(code: str) -> None:
    assert found(code) == marked(code)


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert found(code) == []


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    code = SETUP + FIX_FRAME.replace("@", before)
    assert fixed(code, "MEM02", unsafe=False) == SETUP + FIX_FRAME.replace("@", after)


def test_the_message_puts_a_sum_in_parentheses() -> None:
    (finding,) = findings(SETUP + FIX_FRAME.replace("@", "total += loss + reg"), "MEM02")
    assert "add `(loss + reg).detach()` instead" in finding.message


@pytest.mark.parametrize("before", [before for before, _ in REWRITES.values()], ids=REWRITES.keys())
def test_same_numbers(before: str) -> None:
    code = SETUP + FIX_FRAME.replace("@", before)
    assert all(map(torch.equal, outcome(code), outcome(fixed(code, "MEM02", unsafe=False))))


FIXED = {name: code for name, code in VARIANTS.items() if "elsewhere" not in name}


@pytest.mark.parametrize("variant", FIXED.values(), ids=FIXED.keys())
def test_fixed_code_has_no_finding(variant: str) -> None:
    assert findings(fixed(SETUP + variant, "MEM02", unsafe=False), "MEM02") == []


OVERRIDDEN = """\
class Trainer:
    def step(self, x, y):
        raise NotImplementedError

    def fit(self):
        total = 0.0
        for x, y in loader:
            out, loss = self.step(x, y)
            total += loss  # here
        print(total / len(loader))

class Plain(Trainer):
    def step(self, x, y):
        out = model(x)
        loss = {0}
        return out, loss

class Doubled(Trainer):
    def step(self, x, y):
        out = model(2 * x)
        loss = {0}
        return out, loss
"""


@pytest.mark.parametrize(("loss", "count"), [("crit(out, y)", 1), ("crit(out, y).detach()", 0)])
def test_the_network_may_run_in_any_of_several_methods(loss: str, count: int) -> None:
    assert len(findings(SETUP + OVERRIDDEN.format(loss), "MEM02")) == count


def test_a_copy_that_is_summed_in_place_is_no_alias_of_the_loss() -> None:
    code = (
        SETUP
        + "total = torch.tensor(9.0)\nfor x, y in loader:\n"
        + "    loss = crit(model(x), y)\n    if loss < total:\n        total = loss\ntotal += 1\nprint(total)\n"
    )
    after = fixed(code, "MEM02", unsafe=False)
    assert "total = loss.detach().clone()" in after
    assert all(map(torch.equal, outcome(code), outcome(after)))


def test_a_running_maximum_is_the_same_without_its_graphs() -> None:
    code = SETUP + "total = torch.zeros(())\nfor x, y in loader:\n    total = torch.max(total, crit(model(x), y))\n"
    after = fixed(code, "MEM02", unsafe=False)
    assert "torch.max(total, crit(model(x), y).detach())" in after
    assert all(map(torch.equal, outcome(code), outcome(after)))


def test_a_sum_that_may_be_a_number_is_reported_and_left_alone() -> None:
    code = (
        SETUP
        + """\
total = 0.0
for step, (x, y) in enumerate(loader):
    opt.zero_grad()
    pred = model(x)
    aux = 0.0
    if step % 2:
        aux = pred.abs().mean()
    loss = crit(pred, y) + aux
    loss.backward()
    opt.step()
    total += aux
print(total)
"""
    )
    assert len(findings(code, "MEM02")) == 1
    assert fixed(code, "MEM02", unsafe=False) == code


PARTS = """
import torch


def train(model, optimizer, batches):
    total, other, seen = 0, 0, 0
    for x, y in batches:
        main = model.loss(x, y)
        extra = model.loss(x, y, extra=True)
        loss = torch.mean(main + extra)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
        {beside}
    return total, other, seen
"""


@pytest.mark.parametrize(
    ("beside", "is_fixed"),
    [
        ("other += 2 * main", False),
        ("seen += 1\n        other += main", False),
        ("other += main.item()", True),
        ("seen += len(x)", True),
        ("print(seen)\n        other += main", True),
        ("other += model.score(y)", True),
    ],
)
def test_one_of_several_sums_of_the_same_graph_is_not_detached_alone(beside: str, is_fixed: bool) -> None:
    code = PARTS.format(beside=beside)
    assert len(findings(code, "MEM02")) == 1
    assert ("loss.detach()" in fixed(code, "MEM02")) is is_fixed


def test_a_sum_whose_beginning_goes_backward_is_left_alone() -> None:
    beginning = "if step == 0:\n        total = loss + reg\n        total.backward()\n"
    code = SETUP + FIX_FRAME.replace("@", f"{beginning}    else:\n        total = total + loss")
    code = code.replace("    (loss + reg).backward()\n", "    (loss + reg).backward(retain_graph=True)\n")
    assert fixed(code, "MEM02") == code


STEP = """
    import torch

    def step(model, opt, x, y):
        opt.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss, len(x)
"""
SUMMED = """
    import torch
    from lib import step

    def train(model: torch.nn.Module, opt: torch.optim.SGD, batches: torch.utils.data.DataLoader):
        total = 0.0
        for x, y in batches:
            loss, count = step(model, opt, x, y)
            total += loss
        print(total / 8)
"""


def test_what_another_file_has_sent_backward_is_freed(tmp_path: Path) -> None:
    [finding] = linted(tmp_path, "MEM02", main=SUMMED, lib=STEP)
    assert "keeps the graph nodes behind `loss`" in finding.message


COSTS = """
    from abc import ABC
    import torch

    class Costs(torch.nn.Module, ABC):
        def forward(self, x):
            raise NotImplementedError
"""
SPENT = """
    import torch
    from costs import Costs

    class Linear(Costs):
        def __init__(self, rate):
            super().__init__()
            {held}

        def forward(self, x):
            return self.rate * x

    cost_of = Linear(2.0)

    def choose(candidates, search):
        found = search(candidates)
        cost = cost_of(found).sum()
        return found, cost

    spent = 0.0
    for _ in range(20):
        found, cost = choose(torch.rand(8, 2), search)
        spent += cost
    found, cost = choose(torch.rand(8, 2), other_search)
    print(spent)
"""


@pytest.mark.parametrize(
    ("held", "count"),
    [
        ('self.register_buffer("rate", torch.tensor(rate))', 0),
        ("self.rate = torch.nn.Parameter(torch.tensor(rate))", 1),
    ],
)
def test_what_a_module_without_parameters_makes_has_no_graph(tmp_path: Path, held: str, count: int) -> None:
    assert len(linted(tmp_path, "MEM02", main=SPENT.format(held=held), costs=COSTS)) == count


@pytest.mark.parametrize(("asked", "is_fixed"), [("total.requires_grad", False), ("total.shape", True)])
def test_a_sum_that_is_asked_for_its_graph_keeps_it(asked: str, is_fixed: bool) -> None:
    code = (
        "import torch\nfrom torch import nn\n\nnet = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    )
    code += (
        "total = 0\nfor x in torch.ones(4, 3, 2):\n    opt.zero_grad()\n    loss = net(x).mean()\n    loss.backward()\n"
    )
    code += f"    opt.step()\n    total += loss\nprint({asked})\n"
    assert findings(code, "MEM02")
    assert ("total += loss.detach()" in fixed(code, "MEM02", unsafe=False)) is is_fixed


MEASURED = """
import torch
from networks import network
from torch.utils.data import DataLoader

def train(loader: DataLoader):
    net = network().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    total = 0.0
    for x in loader:
        {results} = net(x.cuda())
        optimizer.zero_grad()
        {loss}.backward()
        optimizer.step()
        total += {measure}
    return float(total) / len(loader)
"""


@pytest.mark.parametrize(
    ("results", "loss", "measure", "count"),
    [
        ("loss, logs", "loss", 'logs["accuracy"]', 0),  # a number, for all that is known
        ("loss, logs", "loss", "logs[0]", 1),
        ("loss, logs", "loss", "loss", 1),
        ("outputs", 'outputs["loss"]', 'outputs["loss"]', 1),
    ],
)
def test_one_of_several_results_that_is_asked_for_a_name_is_no_tensor(
    results: str, loss: str, measure: str, count: int
) -> None:
    code = MEASURED.format(results=results, loss=loss, measure=measure)
    assert len(findings(code, "MEM02")) == count


@pytest.mark.parametrize(
    ("kept", "count"), [("part", 1), ("part.detach()", 0), ("part if name == 'none' else 0.0", 1), ("float(part)", 0)]
)
def test_the_parts_of_a_loss_that_a_loop_takes_out_of_their_dict_hold_its_graph(kept: str, count: int) -> None:
    code = f"""
sums = {{"fit": 0.0, "size": 0.0}}
for x, y in loader:
    opt.zero_grad()
    pred = model(x)
    parts = {{"fit": crit(pred, y), "size": pred.pow(2).mean()}}
    loss = sum(parts.values())
    loss.backward()
    opt.step()
    for name, part in parts.items():
        sums[name] += {kept}
print(sums)
"""
    reported = findings(SETUP + code, "MEM02")
    assert len(reported) == count
    assert all("the graph nodes" in finding.message for finding in reported)  # the pass has freed the rest
