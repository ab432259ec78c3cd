"""TRAIN10: like lines change together, or not at all. The findings stay."""

from __future__ import annotations

import cProfile

import pytest

from tests.support import findings, fixed

HEAD = """\
import torch
from torch import nn
from torch.autograd import Variable
net = nn.Linear(2, 2)
"""


def changed(code: str, *codes: str) -> str:
    return fixed(HEAD + code, *(codes or ("TRAIN10",))).removeprefix(HEAD)


@pytest.mark.parametrize(
    "stays",
    [
        "def act(x):\n    return net(Variable(x, volatile=True))\n",
        "def act(x):\n    return net(Variable(x, volatile=x.volatile))\n",
        "def act(x, wanted):\n    return Variable(x) if wanted else x\n",
        "def act(x):\n    x = Variable(x)\n    return 2 * x if type(x) == Variable else x\n",
        "def act():\n    # volatile: nothing is trained from it\n    x = Variable(torch.zeros(2))\n    return net(x)\n",
        "def act(x):\n    # wrap the inputs\n    x = Variable(x)\n    return net(x)\n",
        "def act(x):\n    x = Variable(2 * x)  # a Variable again\n    return net(x)\n",
        "def act(x):\n    # make variable\n    x = Variable(x)\n    return net(x)\n",
    ],
    ids=[
        "what is to run without gradients",
        "an argument out of sight",
        "the other arm",
        "a question for the class",
        "a comment that explains it",
        "a comment that it is wrapped",
        "a comment beside it",
        "a comment above what goes",
    ],
)
def test_a_file_keeps_its_variables_where_one_has_to_stay(stays: str) -> None:
    code = "def make():\n    return Variable(torch.zeros(2))\n"
    assert len(findings(HEAD + code + stays, "TRAIN10")) == 2
    assert changed(code + stays) == code + stays
    assert "Variable" not in changed(code)


@pytest.mark.parametrize("comment", ["# the latent variables", "# scaled", "# Swap the two"])
def test_a_comment_that_stays_true_is_no_reason_to_keep_them(comment: str) -> None:
    assert "Variable(" not in changed(f"def act(x):\n    {comment}\n    x = Variable(2 * x)\n    return net(x)\n")


def test_what_stands_under_a_new_no_grad_keeps_no_volatile() -> None:
    code = "def make(x):\n    return Variable(torch.zeros(2), volatile=x.volatile)\n\n"
    code += "def evaluate(loader):\n    net.eval()\n    for x, y in loader:\n"
    code += "        x, y = Variable(x, volatile=True), Variable(y)\n        print(net(x).argmax(1) == y)\n"
    after = changed(code, "MEM05", "TRAIN10")
    assert "@torch.no_grad()\ndef evaluate" in after
    assert after.count("Variable") == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x, y = Variable(x), Variable(y)", "x = x.detach()"),
        ("a, x, y, b = 1, Variable(y), Variable(y), Variable(2 * y)", "a, x, b = 1, y, 2 * y"),
        ("(x, y) = Variable(x), Variable(y)", "(x, y) = Variable(x), Variable(y)"),
    ],
)
def test_no_variable_is_assigned_to_itself_beside_others(before: str, after: str) -> None:
    head = "for x, y in torch.utils.data.DataLoader([]):\n    x = net(x)\n"
    assert changed(f"{head}    {before}\n    print(x, y)\n").splitlines()[-2].strip() == after


@pytest.mark.parametrize(
    ("other", "is_fixed"),
    [
        ("h.data.max()", False),
        ("labels.data.tolist()", False),
        ("dataset.data.tolist()", True),
        ("h.data.zero_()", True),
        ("h.size()", True),
    ],
    ids=["nothing shows a tensor", "likewise, by its name", "no tensor, by its name", "a write", "no `.data`"],
)
def test_a_function_keeps_to_one_idiom(other: str, is_fixed: bool) -> None:
    code = (
        f"def show(h, labels, dataset):\n    out = net(torch.zeros(2))\n    print(out.data.cpu())\n    return {other}\n"
    )
    assert ("out.detach().cpu()" in changed(code)) is is_fixed


@pytest.mark.parametrize(
    ("read", "after"),
    [
        ("losses[name].data[0]", "losses[name].item()"),
        ("x.data[0]", "x.data[0]"),
        ("x.data[0].cpu()", "x.detach()[0].cpu()"),
        ("x.data[0] + x[1].sum()", "x.detach()[0] + x[1].sum()"),
        ("x.data[0] * x.size(1)", "x.detach()[0] * x.size(1)"),
    ],
    ids=["one of several losses", "a number, or a row", "a row is moved", "another row is read", "it has dimensions"],
)
def test_the_first_of_what_may_be_a_number(read: str, after: str) -> None:
    """`.detach()[0]` of a tensor without dimensions raises as `.data[0]` does."""
    code = f"def show(losses, name, x):\n    y = x.exp() + net.bias\n    print({read}, y)\n"
    assert changed(code) == code.replace(read, after)


def test_what_comes_out_of_a_network_without_gradients_is_not_detached() -> None:
    code = "class Agent:\n    def act(self, obs):\n        with torch.no_grad():\n"
    code += "            mu, pi = self.actor(obs, 1)\n            return mu.cpu().data.numpy()\n"
    assert changed(code) == code.replace(".data", "")
    assert ".detach().numpy()" in changed(code.replace("torch.no_grad()", "torch.enable_grad()"))


@pytest.mark.parametrize(("more", "is_fixed"), [("", True), ("print(net(x))\n", False)])
def test_a_volatile_variable_that_is_read_under_no_grad_alone(more: str, is_fixed: bool) -> None:
    code = "x = torch.ones(1, 2)\nx = Variable(x, volatile=True)\n"
    code += "with torch.no_grad():\n    print(net(x))\n" + more
    assert ("Variable" not in changed(code)) is is_fixed


def test_what_a_variable_that_stays_is_given_stays_as_well() -> None:
    code = "def copy(x, forward):\n    x = x.exp()\n    return Variable(x.data.clone(), volatile=forward)\n"
    assert len(findings(HEAD + code, "TRAIN10")) == 2
    assert changed(code) == code
    assert "x.detach().clone()" in changed(code.replace("volatile=forward", "volatile=False"))


def test_what_is_asked_for_its_type_stays() -> None:
    code = "def means(image):\n    made = type(image.data)\n    return made(image.data.size()) + net(image)\n"
    assert changed(code) == code
    assert "made(image.size())" in changed(code.replace("type(image.data)", "torch.zeros"))


def test_a_loop_that_trains_says_nothing_of_results_without_gradients() -> None:
    code = "def run(loader):\n    for x, y in loader:\n        out = net(x)\n        out.sum().backward()\n"
    code += "    with torch.no_grad():\n        for x, y in loader:\n            out = net(x)\n"
    code += "            print(out.cpu().data.numpy())\n"
    assert changed(code) == code.replace(".data", "")


def test_what_was_to_have_no_graph_stands_bare_under_no_grad() -> None:
    code = "def act(agent, rollouts):\n    with torch.no_grad():\n"
    code += "        return agent.act(Variable(rollouts.states[0], volatile=True))\n"
    assert "agent.act(rollouts.states[0])" in changed(code)
    assert changed(code.replace("no_grad", "enable_grad")) == code.replace("no_grad", "enable_grad")


def test_the_data_of_an_import_is_no_data_of_a_tensor() -> None:
    imports = "    import torch.utils.data\n    from torch.utils.data import Dataset\n"
    assert "return net(x).detach()" in changed(f"def shown(x):\n{imports}    return net(x).data\n")


@pytest.mark.parametrize("kinds", ["Variable", "(list, Variable)", "torch.autograd.Variable"])
def test_what_is_told_from_a_variable_stays(kinds: str) -> None:
    chosen = f"def kind(x):\n    x = net(x)\n    return x.data.type() if isinstance(x, {kinds}) else x.type()\n"
    wrapped = "def run(x):\n    y = Variable(torch.zeros(2))\n    return net(y)\n"
    assert len(findings(HEAD + chosen + wrapped, "TRAIN10")) == 2
    assert changed(chosen + wrapped) == chosen + wrapped
    after = changed(chosen.replace(f"isinstance(x, {kinds})", "len(x)") + wrapped)
    assert "x.type()" in after
    assert "y = torch.zeros(2)" in after


def test_a_read_of_data_beside_the_question_for_a_variable_is_detached() -> None:
    code = "def shown(x):\n    return net(x).data\n\ndef raw(x):\n    return x.data if isinstance(x, Variable) else x\n"
    assert changed(code) == code.replace("net(x).data", "net(x).detach()")


@pytest.mark.parametrize(
    ("between", "after"),
    [("", "x.cpu().detach().numpy()"), ("print(net)\n", "x.cpu().numpy()")],
)
def test_lines_in_a_row_are_written_alike(between: str, after: str) -> None:
    made = "x = torch.zeros(2)\nout = net(x).cpu().detach().numpy()\n"
    lines = f"{between}row = x.cpu().data.numpy()\nprint(out, row)\n"
    new = changed(made.replace("detach()", "data") + lines)
    assert new == made + lines.replace("x.cpu().data.numpy()", after)


def test_what_a_layer_has_seen_has_no_graph() -> None:
    code = "norm = nn.BatchNorm1d(2)\nmean = norm.running_mean.data.clone()\nprint(norm.weight.data.clone())\n"
    new = changed(code)
    assert "mean = norm.running_mean.clone()\n" in new
    assert "norm.weight.detach().clone()" in new
    own = "class Mean:\n    def add(self, x):\n        self.running_mean = net(x).mean()\n"
    own += "        return 0.9 * self.running_mean.data.clone()\n"
    assert "self.running_mean.detach().clone()" in changed(own)


def test_the_work_grows_with_the_number_of_reads_and_not_with_its_square() -> None:
    def calls(reads: int) -> int:
        lines = "".join(f"    y{i} = net(x)\n    out[{i}] = y{i}.data\n" for i in range(reads))
        profile = cProfile.Profile()
        found = profile.runcall(findings, f"{HEAD}def keep(x, out):\n{lines}", "TRAIN10")
        assert len(found) == reads
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)  # what is imported and read once
    few, many = calls(50), calls(200)
    assert many < 8 * few


def test_the_conditions_of_a_file_are_no_statement() -> None:
    code = "def pick(x, other):\n    if other.data is None:\n        x = net(x)\n    y = net(x)\n"
    assert "    if y.max() > 0:\n" in changed(code + "    if y.data.max() > 0:\n        return x\n")


@pytest.mark.parametrize(
    ("made", "is_bare"),
    [
        ("hits = (x == y).nonzero()[:, 0] + 1\n    hits = hits.float()", True),
        ("hits = torch.reciprocal(0.5 * (x > y).float())", True),
        ("hits = (x == y).float() * net(x)", False),
        ("hits = (x == y).float()\n    hits[0] = net(x)", False),
        ("hits = (x == y).float()\n    hits.add_(net(x))", False),
        ("hits = (x == y).float().requires_grad_()", False),
    ],
)
def test_what_comes_of_comparisons_alone_has_no_graph(made: str, is_bare: bool) -> None:
    code = f"def rank(x, y):\n    {made}\n    return torch.sum(hits).data\n"
    assert ("return torch.sum(hits)\n" in changed(code)) is is_bare


def test_a_comparison_is_bare_beside_what_has_to_be_detached() -> None:
    code = "def show(x, y):\n    x = (net(x) > 0.5).cpu().data.numpy()\n    y = net(y).cpu().data.numpy()\n"
    after = changed(code + "    print(x, y)\n")
    assert "(net(x) > 0.5).cpu().numpy()" in after
    assert "net(y).cpu().detach().numpy()" in after


@pytest.mark.parametrize(("name", "is_fixed"), [("param", False), ("value", True)])
def test_a_class_keeps_to_one_idiom_for_a_tensor(name: str, is_fixed: bool) -> None:
    code = f"""\
import torch

class Average:
    def __init__(self):
        self.shadow = {{}}

    def register(self, network):
        for name, {name} in network.named_parameters():
            self.shadow[name] = {name}.data.clone()

    def update(self, network):
        for name, param in network.named_parameters():
            self.shadow[name].data = 0.1 * param.data + 0.9 * self.shadow[name].data
"""
    assert ("detach" in fixed(code, "TRAIN10")) is is_fixed


@pytest.mark.parametrize(("between", "after"), [("x = handed\n", "x.detach()"), ("", "x")])
def test_the_same_line_is_written_the_same_in_a_function(between: str, after: str) -> None:
    line = "shown.append(x.data.cpu().numpy())\n"
    code = f"def f(shown, handed):\n    x = torch.zeros(2)\n    {line}{between and '    '}{between}    {line}"
    assert changed(code).count(f"shown.append({after}.cpu()") == 2


def test_a_line_that_raises_is_mended_beside_reads_that_stay() -> None:
    code = "def run(x, y):\n    loss = (net(x) - y).mean()\n    kept = y.data if x.grad is None else {}\n    {}\n"
    shown = code.format("keep(loss.data)", "print(loss.data)")
    raising = code.format("keep(loss.data)", "print(loss.data[0])")
    assert changed(shown) == shown
    assert changed(raising) == code.format("keep(loss.data)", "print(loss.item())")
