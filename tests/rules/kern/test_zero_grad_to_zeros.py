"""KERN02: gradients that are filled with zeros."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

from tests.support import findings, fixed, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [(torch.randn(2, 4), torch.tensor([0, 2])) for _ in range(3)]
"""


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "KERN02")]


FILLED = {
    "an argument": """\
for x, y in batches:
    opt.zero_grad(set_to_none=False)  # here
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "a loop before the backward pass": """\
for x, y in batches:
    for p in net.parameters():  # here
        if p.grad is not None:
            p.grad.zero_()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "a loop after the step": """\
for x, y in batches:
    F.cross_entropy(net(x), y).backward()
    opt.step()
    for p in net.parameters():  # here
        p.grad.data.zero_()
""",
    "a loop that does more": """\
for x, y in batches:
    F.cross_entropy(net(x), y).backward()
    for p in net.parameters():
        p.data.sub_(0.1 * p.grad)
        p.grad.data.zero_()  # here
""",
}


@pytest.mark.parametrize("case", FILLED)
def test_gradients_filled_with_zeros_are_found(case: str) -> None:
    assert found(FILLED[case]) == marked(FILLED[case])


DROPPED = {
    "dropped by hand": """\
for x, y in batches:
    for p in net.parameters():  # here
        p.grad = None
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "dropped by hand where there are any": """\
for x, y in batches:
    F.cross_entropy(net(x), y).backward()
    opt.step()
    for p in net.parameters():  # here
        if p.grad is not None:
            p.grad = None
""",
}


@pytest.mark.parametrize("case", DROPPED)
def test_a_loop_that_drops_gradients_becomes_one_call_that_does_the_same(case: str) -> None:
    assert found(DROPPED[case]) == marked(DROPPED[case])
    code = SETUP + DROPPED[case].replace("  # here", "")
    after = fixed(code, "KERN02", unsafe=False)
    assert "    net.zero_grad()\n" in after
    assert "for p in" not in after
    assert findings(after, "KERN02") == []
    torch.testing.assert_close(weights(code), weights(after), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("test", "behind"),
    [
        ("if p.grad is not None:  # frozen", "pass"),
        ("if p.grad is not None:", "print(p.shape)"),
        ("if p.grad is not None:", "p += 1"),
        ("if p.grad is not None:", "del p"),
    ],
)
def test_no_fix_where_a_statement_has_a_comment_or_the_last_parameter_is_used(test: str, behind: str) -> None:
    code = SETUP + f"for p in net.parameters():\n    {test}\n        p.grad = None\n{behind}\n"
    (finding,) = findings(code, "KERN02")
    assert finding.fix is None


def test_no_fix_where_a_sign_for_comments_is_part_of_a_text() -> None:
    code = SETUP + 'nets = {"#1": net}\nfor p in nets["#1"].parameters():\n    p.grad = None\n'
    (finding,) = findings(code, "KERN02")
    assert finding.fix is None


@pytest.mark.parametrize("test", ["p.grad is not kept", "other.weight.grad is not None"])
def test_gradients_are_dropped_on_another_condition(test: str) -> None:
    above = "kept, other = net.weight.grad, nn.Linear(2, 2)\n"
    assert found(f"{above}for p in net.parameters():\n    if {test}:\n        p.grad = None\n") == []


@pytest.mark.parametrize("more", ["bias.grad = kept", "p.grad = kept"])
def test_a_loop_that_sets_other_gradients_is_not_one_call(more: str) -> None:
    above = "kept, bias = torch.ones(3), net.bias\n"
    assert found(f"{above}for p in net.parameters():\n    p.grad = None; {more}\n") == []


ELSE = "else:\n    print(1)\n"
OWN = "class {}(nn.Module):\n    def zero_grad(self, set_to_none=True):\n        print('own')\n\n\n"


@pytest.mark.parametrize(
    ("above", "behind"),
    [
        ("", ELSE),
        (OWN.format("Net") + "net = Net()\n", ""),
        ("net.zero_grad = print\n", ""),
        (OWN.format("Net") + "net = Net() if opt else nn.Linear(4, 3)\n", ""),
    ],
    ids=["a loop with an else", "an own zero_grad", "a zero_grad put in", "one of two networks with an own zero_grad"],
)
def test_a_loop_that_one_call_would_not_replace(above: str, behind: str) -> None:
    assert found(f"{above}for p in net.parameters():\n    p.grad = None\n{behind}") == []


def test_a_base_in_another_file_has_its_own_zero_grad(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "base.py").write_text("from torch import nn\n\n\n" + OWN.format("Base"))
    code = "from base import Base\n\n\nclass Net(Base):\n    pass\n\n\nnet = Net()\n"
    code += "for p in net.parameters():\n    p.grad = None\n"
    script = tmp_path / "train.py"
    script.write_text(code)
    assert not list(lint(Source.read(script), Settings.selecting("KERN02"), strict=True, project=Project()))


def test_the_variable_of_another_loop_is_not_what_the_first_has_left() -> None:
    code = SETUP + "for p in net.parameters():\n    p.grad = None\nfor p in net.parameters():\n    print(p.shape)\n"
    assert "net.zero_grad()\nfor p in net.parameters():\n    print" in fixed(code, "KERN02", unsafe=False)


LOOK_ALIKES = {
    "gradients that a constructor gives to copies": """\
class Trainer:
    def __init__(self, net):
        self.params = [p.clone().detach() for p in net.parameters()]
        for p in self.params:
            p.requires_grad = True
            p.grad = p.data.new_zeros(p.size())

    def step(self, x, y):
        F.cross_entropy(net(x), y).backward()
""",
    "tensors of a pass that is written by hand elsewhere": """\
from functional import softmax_backward
x, y = torch.randn(3), torch.randn(3)
for t in (x,):
    t.grad = torch.zeros_like(t)
softmax_backward(y, x)
""",
    "no argument": """\
for x, y in batches:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "gradients of some parameters that are dropped": """\
for p in net.parameters():
    if p.dim() > 1:
        p.grad = None
""",
    "gradients of a list of tensors that are dropped": """\
for p in [net.weight, net.bias]:
    p.grad = None
""",
    "gradients that are dropped by a network's own zero_grad": """\
class Net(nn.Linear):
    def zero_grad(self, set_to_none=True):
        for p in self.parameters():
            p.grad = None

net = Net(4, 3)
for p in net.parameters():
    p.grad = None
""",
    "gradients of a copy that is made": """\
import copy

class Ensemble:
    def __init__(self, net):
        self.copy = copy.deepcopy(net)
        for p in self.copy.parameters():
            p.grad = None
""",
    "gradients that are dropped and kept": """\
kept = []
for p in net.parameters():
    kept.append(p.grad)
    p.grad = None
""",
    "a step on gradients of zeros, to make the state of an optimizer": """\
def make_state(optimizer):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = torch.zeros_like(p)
    optimizer.step()
    optimizer.zero_grad()

make_state(torch.optim.Adam(net.parameters()))
""",
    "a gradient that is written by hand": """\
for p in net.parameters():
    p.grad = torch.zeros_like(p)
for p in net.parameters():
    p.grad += 0.1 * p
""",
    "gradients that get memory of a pool": """\
with torch.cuda.use_mem_pool(pool):
    for p in net.parameters():
        p.grad = torch.empty_like(p)
for x, y in batches:
    opt.zero_grad(set_to_none=False)
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "gradients that are parts of one buffer": """\
flat, start = torch.zeros(15), 0
for p in net.parameters():
    p.grad = flat[start : start + p.numel()].view_as(p)
    start += p.numel()
for x, y in batches:
    opt.zero_grad(set_to_none=False)
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "a gradient that a model in shared memory has taken over": """\
shared = nn.Linear(4, 3).share_memory()
for x, y in batches:
    net.zero_grad(set_to_none=False)
    F.cross_entropy(net(x), y).backward()
    for p, q in zip(net.parameters(), shared.parameters()):
        if q.grad is None:
            q._grad = p.grad
    opt.step()
""",
}


@pytest.mark.parametrize("value", ["torch.randn_like(p)", "p.grad.clone()", "grads[0].view_as(p)", "None"])
def test_gradients_that_are_set_to_others_say_nothing_of_their_memory(value: str) -> None:
    given = f"grads = [torch.ones(3)]\nnet.bias.grad = {value}\n".replace("p", "net.bias")
    assert found(given.replace("torch.randn_like(net.bias)", "torch.randn(3)") + FILLED["an argument"]) == [4]


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_look_alikes_are_silent(case: str) -> None:
    assert found(LOOK_ALIKES[case]) == []


def weights(code: str) -> torch.Tensor:
    namespace: dict[str, object] = {"__name__": "program"}
    exec(compile(code, "program", "exec"), namespace)
    net = namespace["net"]
    assert isinstance(net, torch.nn.Linear)
    return net.weight


@pytest.mark.parametrize("case", FILLED)
def test_the_fixed_program_trains_the_same(case: str) -> None:
    after = fixed(SETUP + FILLED[case], "KERN02")
    assert findings(after, "KERN02") == []
    torch.testing.assert_close(weights(SETUP + FILLED[case]), weights(after), rtol=0, atol=0)


PREPARED = """\
for x, y in batches:
    for p in net.parameters():
        # as the optimizer does
        if p.grad is not None:
            p.grad.detach_(){remark}
            p.grad.zero_()
    F.cross_entropy(net(x), y).backward()
    opt.step()
"""


def test_nothing_is_left_of_what_prepared_the_gradients() -> None:
    code = SETUP + PREPARED.format(remark="")
    after = fixed(code, "KERN02")
    assert "    # as the optimizer does\n    net.zero_grad()\n    F." in after
    torch.testing.assert_close(weights(code), weights(after), rtol=0, atol=0)


@pytest.mark.parametrize("source", ["taken from the optimizer", "see https://docs.pytorch.org"])
def test_no_fix_where_a_comment_says_where_the_code_is_from(source: str) -> None:
    code = SETUP + PREPARED.format(remark="").replace("as the optimizer does", source)
    (finding,) = findings(code, "KERN02")
    assert finding.fix is None


def test_no_fix_where_a_remark_stands_beside_what_prepared_the_gradients() -> None:
    (finding,) = findings(SETUP + PREPARED.format(remark="  # they may have one"), "KERN02")
    assert finding.fix is None


PERTURBED = """\
shifts = [torch.zeros(2, 4)]
{before}
for _ in range(3):
    {inside}
    F.cross_entropy(net(batches[0][0] + leaves[0]), batches[0][1]).backward()
    shifts = [s + p.grad for s, p in zip(shifts, leaves)]
    for p in leaves:
        p.grad.data.zero_()
"""
MADE = "leaves = [s.clone().requires_grad_() for s in shifts]"


@pytest.mark.parametrize(
    ("before", "inside", "count"),
    [("", MADE, 0), (MADE, "", 1), ("", "leaves = [p for p in net.parameters()]", 1)],
    ids=["made in each iteration", "made once", "collected in each iteration"],
)
def test_no_pass_adds_to_the_gradients_of_tensors_that_each_iteration_makes(
    before: str, inside: str, count: int
) -> None:
    assert len(findings(SETUP + PERTURBED.format(before=before, inside=inside), "KERN02")) == count


@pytest.mark.parametrize(
    ("before", "after", "is_fixed"),
    [
        ("print(sum(p.grad.sum() for p in net.parameters()))", "pass", False),
        ("print([p.grad.norm() for p in net.parameters() if p.grad is not None])", "pass", True),
        ("print([p.grad is None for p in net.parameters()])", "pass", True),
        ("pass", "print([p.grad.norm() for p in net.parameters()])", True),
    ],
)
def test_a_gradient_that_is_read_before_the_next_pass_stays_a_tensor(before: str, after: str, is_fixed: bool) -> None:
    code = f"""
        import torch

        def train(net, opt, data):
            for x in data:
                loss = net(x).mean()
                opt.zero_grad(set_to_none=False)
                {before}
                loss.backward()
                {after}
                opt.step()

        net = torch.nn.Linear(3, 1)
        net(torch.ones(4, 3)).mean().backward()
        train(net, torch.optim.SGD(net.parameters(), 0.1), torch.randn(2, 4, 3))
        """
    after_fix = fixed(code, "KERN02")
    assert ("set_to_none" not in after_fix) is is_fixed
    exec(after_fix, {})


@pytest.mark.parametrize(("asked", "count"), [("torch==1.9.0", 0), ("torch>=1.9", 0), ("torch>=2.1", 1), ("numpy", 1)])
def test_gradients_are_dropped_by_hand_for_an_older_torch(tmp_path: Path, asked: str, count: int) -> None:
    (tmp_path / "requirements.txt").write_text(f"{asked}\n")
    file = tmp_path / "train.py"
    file.write_text(
        "import torch\n"
        "net = torch.nn.Linear(3, 1)\n"
        "for x in torch.randn(2, 4, 3):\n"
        "    for p in net.parameters():\n"
        "        p.grad = None\n"
        "    net(x).mean().backward()\n"
    )
    source = Source.read(file)
    assert len(lint(source, Settings.selecting("KERN02"), strict=True, project=Project())) == count
    older = replace(Settings.selecting("KERN02"), target_torch="1.13")
    assert lint(source, older, strict=True, project=Project()) == []


@pytest.mark.parametrize(
    ("above", "below", "count"), [("", "opt = torch.optim.Adam(params)", 0), ("opt = torch.optim.Adam(params)", "", 1)]
)
def test_gradients_are_given_to_begin_with(above: str, below: str, count: int) -> None:
    code = f"""
        import torch

        def tune(layer, batches):
            params = list(layer.parameters())
            {above}
            for param in params:
                param.grad = torch.zeros_like(param)
            {below}
            for x in batches:
                layer(x).mean().backward()
                opt.step()
                opt.zero_grad()
        """
    assert len(findings(code, "KERN02")) == count
