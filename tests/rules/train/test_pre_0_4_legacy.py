"""TRAIN10: `Variable`, `volatile` and reads of `.data`."""

from __future__ import annotations

import pytest
import torch

from tests.rules.train.legacy_idioms import LEGACY, LOOK_ALIKES, SETUP, run
from tests.support import findings, fixed, marked


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "TRAIN10")]


@pytest.mark.parametrize("case", LEGACY)
def test_an_idiom_is_found(case: str) -> None:
    assert found(LEGACY[case]) == marked(LEGACY[case])


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_look_alikes_are_silent(case: str) -> None:
    assert found(LOOK_ALIKES[case]) == []


OTHERWISE = {
    "weights that are copied before an exchange",
    "the first element of a loss",
    "weights that an average follows",
    "samples that are scaled before they are shown",
}


@pytest.mark.parametrize("case", [case for case in LEGACY if case not in OTHERWISE])
def test_the_fixed_program_computes_the_same(case: str) -> None:
    code = SETUP + LEGACY[case]
    after = fixed(code, "TRAIN10")
    assert findings(after, "TRAIN10") == []
    old, new = run(code), run(after)
    for name, value in old.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, new[name], rtol=0, atol=0)


def outcome(code: str) -> object:
    """The value of y in a program as a list or text, or the class of its error."""
    try:
        value = run(code)["y"]
    except Exception as error:
        return type(error)
    return value.tolist() if isinstance(value, torch.Tensor) and not code.endswith("x.size()))") else str(type(value))


@pytest.mark.parametrize("way", ["", ".numpy()", ".cpu().numpy()"])
def test_the_first_element_of_a_loss_becomes_a_number(way: str) -> None:
    before = f"{SETUP}value = loss.data{way}[0]\n"
    (finding,) = findings(before, "TRAIN10")
    assert finding.message.startswith(f"`loss.data{way}[0]` raises an IndexError")
    after = fixed(before, "TRAIN10")
    assert after == f"{SETUP}value = loss.item()\n"
    assert isinstance(run(after)["value"], float)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Variable(net(x)).detach()", "net(x).detach()"),
        ("Variable(net(x) + 1).detach()", "(net(x) + 1).detach()"),
        ("net(x).data.new(3).zero_()", "net(x).new(3).zero_()"),
        ("x.data.numpy()", "x.numpy()"),
        ("Variable(load().new(3).normal_(0, 1))", "load().new(3).normal_(0, 1)"),
        (
            "Variable(torch.tensor([[1, 2],\n                           [3, 4]]))",
            "torch.tensor([[1, 2],\n                  [3, 4]])",
        ),
        ("Variable(torch.tensor([\n    [1, 2],\n]))", "torch.tensor([\n    [1, 2],\n])"),
        ("[Variable(x, volatile=True), Variable(x)]", "[Variable(x, volatile=True), Variable(x)]"),
        ("x.data[0, 0] > 0", "x[0, 0] > 0"),
        ("(net(x).data > 0).sum()", "(net(x) > 0).sum()"),
        ("x.data.numpy()\nx.requires_grad = True", "x.detach().numpy()\nx.requires_grad = True"),
        ("net(x).data.type() == x.data.type()", "net(x).type() == x.type()"),
        ("Variable(x.unsqueeze(0).contiguous())", "x.unsqueeze(0).contiguous()"),
        ("Variable(x.unsqueeze(0))\ny += net.bias", "x.unsqueeze(0).detach()\ny += net.bias"),
        ("Variable(x.unsqueeze(0))\ny[0] = net.bias", "x.unsqueeze(0).detach()\ny[0] = net.bias"),
        ("Variable(torch.zeros(2, 3)).t()", "torch.zeros(2, 3).t()"),
        ("Variable(torch.zeros(3))\ny[0] = 1", "torch.zeros(3)\ny[0] = 1"),
        ("Variable(x.float())", "x.float()"),
        ("Variable(net(x).new(3).zero_())", "net(x).new(3).zero_()"),
        ("Variable(load().new(x.size()))", "load().new(x.size())"),
        ("2 * Variable(x)", "2 * x"),
        ("Variable(x).cuda()", "x.cuda()"),
        ("Variable(net(x).data, requires_grad=True)", "net(x).detach().requires_grad_()"),
        ("x.argmax(1)\nz = Variable(y).cuda()", "x.argmax(1)\nz = y.cuda()"),
        ("x.float().type_as(net(x).data)", "x.float().type_as(net(x))"),
        ("net(x).gather(1, Variable(load()).view(-1, 1))", "net(x).gather(1, load().view(-1, 1))"),
        ("net(x).gather(1, net(x).data.long().view(-1, 1))", "net(x).gather(1, net(x).long().view(-1, 1))"),
        ("net(x).argmax(1).eq(net(x).data.long().view(-1))", "net(x).argmax(1).eq(net(x).long().view(-1))"),
        (
            "0\nwith torch.no_grad():\n    z = net(x)\n    print(torch.max(z.data, 1))",
            "0\nwith torch.no_grad():\n    z = net(x)\n    print(torch.max(z, 1))",
        ),
        ("torch.zeros_like(net(x).data)", "torch.zeros_like(net(x))"),
        ("isinstance(net.weight.data, torch.cuda.FloatTensor)", "isinstance(net.weight, torch.cuda.FloatTensor)"),
        ("torch.numel(net.weight.data)", "torch.numel(net.weight)"),
        ("net.weight.data.is_sparse", "net.weight.is_sparse"),
        ("(-torch.log(load(x))).data[0]", "(-torch.log(load(x))).data[0]"),
        ("net(x).sum().data.cpu().item()", "net(x).sum().cpu().item()"),
        ("net(x).data.cpu().numpy().flatten().tolist()", "net(x).detach().cpu().numpy().flatten().tolist()"),
        ("net(x).data[0].mean().tolist()", "net(x)[0].mean().tolist()"),
        ("(\n    net(x)\n    .data.numpy()\n)", "(\n    net(x)\n    .detach()\n    .numpy()\n)"),
        ("net(x).mean().data[0]", "net(x).mean().item()"),
        ("net(x).mean().data.squeeze()[0]", "net(x).mean().item()"),
        ("net(x).data.squeeze()[0]", "net(x).data.squeeze()[0]"),
        ("net(x).data.squeeze(0)[0].mean().tolist()", "net(x).squeeze(0)[0].mean().tolist()"),
        ("F.relu(\n    Variable(x, requires_grad=False))", "F.relu(x)"),
        ("F.relu(\n    Variable(x),\n)  # kept", "F.relu(x)  # kept"),
        ("F.softmax(\n    Variable(x), 1)", "F.softmax(\n    x, 1)"),
        ("Variable((x > 0).float())", "(x > 0).float()"),
        ("Variable(net(x).abs())", "net(x).abs().detach()"),
        ("load(Variable(load(x)))", "load(load(x))"),
        ("load(Variable(weigh(x)))", "load(Variable(weigh(x)))"),
        ("net(x).argmax(1)\ny = y.data\nprint(y)", "net(x).argmax(1)\nprint(y)"),
        ("Variable(x.new(3).fill_(net(x).sum()))", "x.new(3).fill_(net(x).sum()).detach()"),
    ],
)
def test_nothing_is_detached_twice_or_for_a_new_tensor(before: str, after: str) -> None:
    head = SETUP + "from torch.autograd import Variable\nprint(Variable)\ny = "
    assert fixed(head + before, "TRAIN10") == head + after
    if not before.endswith(("data[0]", "data.squeeze()[0]")):  # which torch refuses
        assert outcome(head + before) == outcome(head + after)


AGENTS = {
    "the best action": ("net(x[:1]).max(1)[1].data[0]", "net(x[:1]).max(1)[1][0].item()"),
    "an action that is drawn": (
        "net(x[:1]).exp().multinomial(1).data[0, 0]",
        "net(x[:1]).exp().multinomial(1)[0, 0].item()",
    ),
    "an action under a name": ("best.data[0][0]", "best[0][0].item()"),
}


@pytest.mark.parametrize("case", AGENTS)
def test_an_environment_is_given_the_number_of_an_action(case: str) -> None:
    before, after = AGENTS[case]
    code = f"""{SETUP}class Game:
    def step(self, action):
        return int(action)

env = Game()
logits = net(x[:1])
best = logits.max(1, keepdim=True)[1]
action = {before}
taken = env.step(action)
"""
    new = fixed(code, "TRAIN10")
    assert f"action = {after}\n" in new
    assert isinstance(run(new)["action"], int)
    assert run(new)["taken"] == run(code)["taken"]
    stepping = code.replace("env = Game()", "env = torch.optim.SGD(net.parameters(), 0.1)")
    assert ".item()" not in fixed(stepping, "TRAIN10")


def test_a_result_that_is_thrown_away_is_left_to_its_author() -> None:
    code = SETUP + "net.weight.data.clamp(-1, 1)\ndef show():\n    print(net.weight.data.clamp(-1, 1))\n"
    assert len(findings(code, "TRAIN10")) == 2
    new = fixed(code, "TRAIN10")
    assert new.endswith("net.weight.data.clamp(-1, 1)\ndef show():\n    print(net.weight.detach().clamp(-1, 1))\n")
    assert "net.weight.detach().numpy().tofile(" in fixed(SETUP + "net.weight.data.numpy().tofile('x')\n", "TRAIN10")


def test_a_statement_keeps_to_one_idiom() -> None:
    mixed = SETUP + "other = nn.Linear(4, 3)\nnet.weight.data = 0.9 * net.weight.data + 0.1 * other.weight.data\n"
    assert len(findings(mixed, "TRAIN10")) == 1
    assert fixed(mixed, "TRAIN10") == mixed
    written = SETUP + "net.weight.data = nn.Linear(4, 3).weight.data[1:]\n"
    assert len(findings(written, "TRAIN10")) == 1
    assert fixed(written, "TRAIN10") == written


def test_a_statement_is_not_rewritten_by_halves() -> None:
    """Of the two reads, one alone would be safe to rewrite."""
    halves = SETUP + "kept = [net(x).data.mean(), net(x).data]\n"
    assert fixed(halves, "TRAIN10", unsafe=False) == halves
    assert fixed(halves, "TRAIN10") == halves.replace(".data", ".detach()")


def test_what_a_function_is_handed_is_detached_even_where_no_call_in_sight_brings_a_graph() -> None:
    code = SETUP + "def shown(values):\n    return values.data.numpy()\n\nprint(shown(x))\n"
    assert "values.detach().numpy()" in fixed(code, "TRAIN10")


@pytest.mark.parametrize(
    ("read", "bare"),
    [
        ("accuracy(net(x).data, y.data)", "accuracy(net(x).detach(), y)"),
        ("y.data.cpu().numpy()", "y.cpu().numpy()"),
        ("y.data.sum()", "y.sum()"),
    ],
)
def test_what_a_loader_yields_has_no_graph_to_be_cut_from(read: str, bare: str) -> None:
    code = """\
import torch

def test(data, net, accuracy):
    for x, y in torch.utils.data.DataLoader(data):
        y = y.cuda()
"""
    assert fixed(f"{code}        print({read})\n", "TRAIN10") == f"{code}        print({bare})\n"


@pytest.mark.parametrize("way", ["net(x).sum().data", "net(x).sum().cpu().data", "net(x).sum().data.cpu()"])
def test_math_is_given_the_number(way: str) -> None:
    before = f"{SETUP}import math\nvalue = math.atan({way})\n"
    after = fixed(before, "TRAIN10", unsafe=False)
    assert after == f"{SETUP}import math\nvalue = math.atan(net(x).sum().item())\n"
    assert run(after)["value"] == run(before)["value"]


def test_the_first_element_of_a_divergence_becomes_a_number() -> None:
    code = "import torch\n\ndef shown(validate):\n    kld = validate()\n    print(kld.data.cpu().numpy()[0])\n"
    assert "print(kld.item())" in fixed(code, "TRAIN10")


@pytest.mark.parametrize(("imports", "count"), [("import numpy  # not Pytorch\n", 0), ("import torch\n", 1)])
def test_data_that_is_read_as_an_array_is_a_tensor_only_where_torch_is_in_use(imports: str, count: int) -> None:
    code = "def fold(constant):\n    return abs(constant.data.numpy())\n"
    assert len(findings(imports + code, "TRAIN10")) == count


def test_a_pair_of_lines_is_not_rewritten_by_halves() -> None:
    pair = "state = {{}}\nstate['a'] = {0}.new(3).zero_()\nstate['b'] = {1}.new(3).fill_(net.weight.data[0, 0])\n"
    after = fixed(SETUP + pair.format("net.weight.data", "net.weight"), "TRAIN10")
    assert "state['a'] = net.weight.new(3)" in after
    filled = (
        "state = {}\nstate['a'] = net.weight.data.new(3)\nstate['b'] = net.weight.data.new(3).copy_(net.bias.data)\n"
    )
    assert findings(SETUP + filled, "TRAIN10") != []
    assert fixed(SETUP + filled, "TRAIN10") == SETUP + filled


STEP = """\
import torch

class Descent(torch.optim.SGD):
    def step(self):
        for p in self.param_groups[0]["params"]:
            change = p.grad.data.sign() + 0.1 * p.data
            WRITE
"""


def test_what_a_function_also_writes_to_stays_as_it_is() -> None:
    after = fixed(STEP.replace("WRITE", "p.data.add_(change, alpha=-0.1)"), "TRAIN10")
    assert "change = p.grad.data.sign() + 0.1 * p.data" in after
    after = fixed(STEP.replace("WRITE", "print(change)"), "TRAIN10")
    assert "change = p.grad.detach().sign() + 0.1 * p.detach()" in after


SHOWN_TO_A_FUNCTION = """\
import torch
from torch import nn

net = nn.Linear(4, 4)

def shown(gate):
{body}

for x in torch.ones(2, 4):
    with torch.no_grad():
        out = net(x)
    shown(out)
"""


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("return torch.sigmoid(gate[0]).data.numpy()", "return torch.sigmoid(gate[0]).detach().numpy()"),
        ("return (2 * gate).data.numpy()", "return (2 * gate).detach().numpy()"),
        ("both = torch.cat([gate, gate])\n    return both.data.numpy()", "return both.detach().numpy()"),
        ("part = gate.mul(2).clamp(0, 1)\n    return part[0].data", "return part[0].detach()"),
        ("return gate.data.mul(255)", "return gate.detach().mul(255)"),
        ("return torch.zeros(4).sin().data.numpy()", "return torch.zeros(4).sin().numpy()"),
    ],
)
def test_what_is_made_of_what_a_function_is_given_may_have_a_graph_next_time(body: str, after: str) -> None:
    assert after in fixed(SHOWN_TO_A_FUNCTION.format(body="    " + body), "TRAIN10")
