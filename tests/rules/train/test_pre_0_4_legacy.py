"""TRAIN10: `Variable`, `volatile` and reads of `.data`."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings, fixed

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Linear(4, 3)
x = torch.randn(2, 4)
loss = F.cross_entropy(net(x), torch.tensor([0, 2]))
"""


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "TRAIN10")]


def marked(code: str) -> list[int]:
    return [number for number, line in enumerate(code.splitlines(), 1) if "# here" in line]


LEGACY = {
    "a variable around a batch": """\
from torch.autograd import Variable
out = net(Variable(x))  # here
""",
    "the first element of a loss": "value = loss.data[0]  # here\n",
    "values that are printed": "print(net.weight.data.norm())  # here\n",
    "values that live on": "weights = net.weight.data  # here\n",
    "the best class": "_, best = net(x).data.max(1)  # here\n",
    "samples that are scaled before they are shown": """\
fake = net(x)
fake.data = fake.data.mul(0.5)  # here
print(fake.data.tolist())  # here
""",
    "weights that an average follows": """\
def follow(module, averages):
    for name, p in module.named_parameters():
        averages[name].data = 0.9 * averages[name].data + 0.1 * p.data  # here
""",
    "a new tensor beside one": "def mask(x):\n    return x.data.new(3).bernoulli_(0.5)  # here\n",
    "a chain that ends in place": "shown = net(x).data.float().clamp_(0, 1)  # here\n",
    "a point between two batches": "y = (0.5 * x.data + 0.5).requires_grad_(True)  # here\n",
    "the input of a module": """\
class Distance(nn.Module):
    def forward(self, first, second):
        return measure(first.data, second)  # here
""",
    "the target of a batch": """\
from torch.utils.data import DataLoader
def show_all(dataset):
    for batch in DataLoader(dataset):
        show(batch["target"].data)  # here
""",
    "what is asked whether it is a parameter": """\
def load(own, state):
    for name, p in state.items():
        if isinstance(p, nn.Parameter):
            p = p.data  # here
        own[name].copy_(p)
""",
    "values that a decay adds": """\
def decay(group):
    for p in group["params"]:
        step = p.grad.add(0.1, p.data)  # here
""",
    "a state like a parameter": "def start(state, p):\n    state['average'] = torch.zeros_like(p.data)  # here\n",
    "noise beside logits": """\
noise = torch.empty(2, 3)
noise.uniform_()
noise = net(x).data - noise.log()  # here
""",
    "kernels for another layer": """\
def widen(layer, other):
    new = layer.weight.data.mean(dim=1, keepdim=True)  # here
    other.weight.data = new
""",
    "weights that are copied before an exchange": """\
def average(parameters, averages, kept):
    for p in parameters:
        kept[p] = p.grad.data.clone()  # here
        kept[p] = p.data.clone()  # here
        p.data = averages[p]
""",
    "what a module keeps from its first call on": """\
from torch.autograd import Variable

class Flow(nn.Module):
    def forward(self, z):
        if not hasattr(self, "inverse"):
            self.inverse = Variable(z.inverse())  # here
        return self.inverse @ z
""",
    "samples that are saved": """\
def save(fake, path):
    from torchvision.utils import save_image
    save_image(fake.data, path)  # here
""",
    "a type": "kind = net.weight.data.dtype  # here\n",
}


@pytest.mark.parametrize("case", LEGACY)
def test_an_idiom_is_found(case: str) -> None:
    assert found(LEGACY[case]) == marked(LEGACY[case])


LOOK_ALIKES = {
    "a parameter that is declared as something else": """\
from arguments import Wrapper

def is_understood(wrapper: Wrapper):
    return wrapper.data.given and wrapper.requires_grad.given
""",
    "an initialisation": "net.weight.data.normal_(0, 0.1)\n",
    "an update in place": "net.weight.data -= 0.1 * x[:1]\n",
    "an update by assignment": "net.weight.data = 0.9 * net.weight.data\n",
    "a step by hand": "net.weight.data = net.weight.data - 0.1 * net.weight.grad.data\n",
    "what older releases need": """\
from torch.autograd import Variable
inputs = x if hasattr(torch, "no_grad") else Variable(x)
if not hasattr(torch, "no_grad"):
    inputs = Variable(x)
""",
    "blobs of another package": "def read(layer, make):\n    return make(layer.blobs[0].data)\n",
    "entries of a memory": "def last(memory, i):\n    return memory.transitions.data[i].state\n",
    "settings of an object out of sight": """\
def stretched(hps, mask):
    lengths = mask.sum([1, 2]).long() * hps.data.hop_length
    return make(lengths, hps.data)
""",
    "an initialiser that is handed in": """\
def prepare(module, weight_init, gain):
    weight_init(module.weight.data, gain=gain)
""",
    "a statement that does nothing": "net.weight.data\n",
    "a packed sequence that a module gets": """\
class Wrapper(nn.Module):
    def forward(self, packed):
        return process(packed.data), packed.batch_sizes
""",
    "an update in two statements": "new = 0.9 * net.weight.data\nnet.weight.data = new\n",
    "weights that are exchanged": """\
def swap(parameters, averages):
    kept = []
    for p, average in zip(parameters, averages):
        kept.append(p.data)
        p.data = average
    return kept

swap(net.parameters(), [torch.zeros(3, 4), torch.zeros(3)])
""",
    "an initialiser": "nn.init.zeros_(net.bias.data)\n",
    "the data of a packed sequence": """\
packed = nn.utils.rnn.pack_sequence([torch.ones(2, 4)])
values = packed.data
""",
    "an object of a class of tensors, seen from inside": """\
class Tagged(torch.Tensor):
    def __deepcopy__(self, memo):
        return type(self)(self.data.clone())
""",
    "the data of an object of its own, seen from inside": """\
class Batch:
    def __init__(self, data):
        self.data = data

    def mean(self):
        return self.data.mean()
""",
}


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_look_alikes_are_silent(case: str) -> None:
    assert found(LOOK_ALIKES[case]) == []


def run(code: str) -> dict[str, object]:
    namespace: dict[str, object] = {"__name__": "program"}
    exec(compile(code, "program", "exec"), namespace)
    return namespace


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
        ("net(x).sum().data.cpu().item()", "net(x).sum().cpu().item()"),
        ("net(x).data.cpu().numpy().flatten().tolist()", "net(x).detach().cpu().numpy().flatten().tolist()"),
        ("net(x).data[0].mean().tolist()", "net(x)[0].mean().tolist()"),
        ("net(x).mean().data[0]", "net(x).mean().item()"),
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
    if not before.endswith("data[0]"):
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


OF_A_BATCH = """\
import torch
from torch.autograd import Variable
from torch.utils.data import DataLoader

def train(data, net, criterion, optimizer):
    for batch in DataLoader(data):
        optimizer.zero_grad()
        inputs, labels = Variable(batch[0]), Variable(batch[1])
        criterion(net(inputs), labels).backward()
        optimizer.step()
"""


def test_a_part_of_a_batch_stands_bare_unless_its_gradient_is_read() -> None:
    assert "inputs, labels = batch[0], batch[1]\n" in fixed(OF_A_BATCH, "TRAIN10")
    probing = OF_A_BATCH + "        print(inputs.grad)\n"
    assert "inputs, labels = batch[0].detach(), batch[1]\n" in fixed(probing, "TRAIN10")
    other = OF_A_BATCH + "        print(net.grad, batch[1].shape)\n"
    assert "inputs, labels = batch[0], batch[1]\n" in fixed(other, "TRAIN10")
    for again in ("batch", "batch[0]", "batch[0][1]"):
        code = other + f"        keep({again})\n"
        assert "inputs, labels = batch[0], batch[1]" in fixed(code, "TRAIN10")
        assert "inputs, labels = Variable(batch[0])" in fixed(code, "TRAIN10", unsafe=False)


FROM_DATA = """from torch.autograd import Variable
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor

def train(net, dataset, known):
    for batch in dataset:
        LINE
        net(y).sum().backward()
        print(net.grad, batch)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = Variable(Tensor(3, known.n).fill_(1.0), requires_grad=False)", "y = Tensor(3, known.n).fill_(1.0)"),
        ("y = Variable(Tensor(numpy.zeros((3, 4))))", "y = Tensor(numpy.zeros((3, 4)))"),
        ("y = Variable(Tensor(known))", "y = Tensor(known)"),
        ("y = Variable(Tensor(known.fill_(net(batch))))", "y = Tensor(known.fill_(net(batch))).detach()"),
        ("y = Variable(net(batch).data)", "y = net(batch).detach()"),
        ("y = Variable(batch['y'].float())", "y = batch['y'].float()"),
        ("y = Variable(batch['y'].float()); y.grad", "y = batch['y'].float().detach(); y.grad"),
        ("batch = y = Variable(batch.float())", "batch = y = batch.float()"),
        ("batch = Variable(batch, requires_grad=False); y = 2 * batch", "y = 2 * batch"),
        ("batch = net(batch); y = Variable(batch)", "batch = net(batch); y = batch.detach()"),
    ],
)
def test_what_is_made_anew_or_drawn_and_not_read_again_stands_bare(before: str, after: str) -> None:
    code = SETUP + "import numpy\n" + FROM_DATA.replace("LINE", before)
    assert after + "\n" in fixed(code, "TRAIN10")


EMPTIED = """\
import torch
from torch.autograd import Variable
from torch.utils.data import DataLoader

def evaluate(data, net):
    for x, y in DataLoader(data):
        print(len(x))
        HEAD
            x = Variable(x)
            y = Variable(y)
        print(net(x), y)
"""


def test_a_block_of_which_nothing_would_be_left_goes_as_a_whole() -> None:
    after = EMPTIED.replace("        HEAD\n            x = Variable(x)\n            y = Variable(y)\n", "")
    assert fixed(EMPTIED.replace("HEAD", "with torch.no_grad():"), "TRAIN10") == after
    branch = "if net.gpu:\n            x, y = x.cuda(), y.cuda()\n"
    assert fixed(EMPTIED.replace("HEAD", branch + "        else:"), "TRAIN10") == after.replace(
        "        print(net(x)", f"        {branch}        print(net(x)"
    )


@pytest.mark.parametrize(
    "head", ["if net.gpu:", "try:\n            x.cuda()\n        finally:", "with open(net.path) as file:"]
)
def test_no_other_block_is_emptied(head: str) -> None:
    code = EMPTIED.replace("HEAD", head)
    assert len(findings(code, "TRAIN10")) == 2
    assert fixed(code, "TRAIN10") == code


def test_a_result_that_is_thrown_away_is_left_to_its_author() -> None:
    code = SETUP + "net.weight.data.clamp(-1, 1)\nprint(net.weight.data.clamp(-1, 1))\n"
    assert len(findings(code, "TRAIN10")) == 2
    assert fixed(code, "TRAIN10").endswith("net.weight.data.clamp(-1, 1)\nprint(net.weight.detach().clamp(-1, 1))\n")
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


def test_a_local_tensor_that_is_moved_and_returned_is_not_detached() -> None:
    code = (
        SETUP
        + """\
from torch.autograd import Variable

def encoded(text, cuda):
    codes = torch.LongTensor([ord(letter) for letter in text])
    if cuda:
        codes = codes.cuda()
    return Variable(codes)
"""
    )
    assert "    return codes\n" in fixed(code, "TRAIN10")
    kept = code.replace("torch.LongTensor([ord(letter) for letter in text])", "text")
    assert "    return codes\n" in fixed(kept, "TRAIN10")
    assert "    return Variable(codes)\n" in fixed(kept, "TRAIN10", unsafe=False)


def test_what_a_function_is_handed_is_detached_even_where_no_call_in_sight_brings_a_graph() -> None:
    code = SETUP + "def shown(values):\n    return values.data.numpy()\n\nprint(shown(x))\n"
    assert "values.detach().numpy()" in fixed(code, "TRAIN10")


def test_a_tensor_without_a_graph_stands_bare_where_it_gets_another_name() -> None:
    for call, bare in (("Variable(y)", "y"), ("Variable(y.long())", "y.long()"), ("Variable(y).cuda()", "y.cuda()")):
        code = OF_A_BATCH.replace("Variable(batch[0]), Variable(batch[1])", f"Variable(batch[0]), {call}")
        code = code.replace("for batch in", "for batch, y in")
        assert f"inputs, labels = batch[0], {bare}\n" in fixed(code, "TRAIN10")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("labels += net.bias", id="it takes part in a graph later"),
        pytest.param("labels[0] = net.bias", id="an element of it does"),
        pytest.param("y.requires_grad_()", id="the other becomes a leaf"),
        pytest.param("y.add_(net.bias)", id="the other is changed"),
    ],
)
def test_two_names_of_one_tensor_are_kept_apart_where_that_shows(line: str) -> None:
    code = OF_A_BATCH.replace("inputs, labels = Variable(batch[0]), Variable(batch[1])", "labels = Variable(y)")
    code = code.replace("for batch in", "for inputs, y in")
    assert "labels = y\n" in fixed(code, "TRAIN10")
    assert "labels = y.detach()\n" in fixed(code.replace("(y)\n", f"(y)\n        {line}\n"), "TRAIN10")


def test_the_switch_of_a_parameter_makes_no_leaf_of_a_batch() -> None:
    frozen = OF_A_BATCH + "    for p in net.parameters():\n        p.requires_grad = False\n"
    assert "inputs, labels = batch[0], batch[1]\n" in fixed(frozen, "TRAIN10")


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


TWO_LOOPS = """\
import torch
from torch.autograd import Variable

def train(net, train_loader, test_loader):
    for data, target in train_loader:
        data, target = data.cuda(), target.cuda()
        data, target = Variable(data), Variable(target)
        net(data).sum().backward()
    for data, target in test_loader:
        data, target = Variable(data), Variable(target)
        print(net(data), target)
"""


def test_what_two_loops_draw_under_one_name_stands_bare() -> None:
    lines = [line for line in TWO_LOOPS.splitlines(keepends=True) if "Variable(" not in line]
    assert fixed(TWO_LOOPS, "TRAIN10").replace("from torch.autograd import Variable\n", "") == "".join(
        line for line in lines if "import Variable" not in line
    )


NOISY = """\
import torch
from torch.autograd import Variable

class Noisy(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 3)
        self.register_buffer("noise", torch.zeros(3, 3))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight * Variable(self.noise), self.bias)

    def renew(self):
        self.noise = torch.randn(3, 3)
"""


def test_a_buffer_stands_bare() -> None:
    assert "self.weight * self.noise, self.bias" in fixed(NOISY, "TRAIN10")
    assert "self.noise.detach()" in fixed(NOISY.replace("torch.randn(3, 3)", "self.weight * 2"), "TRAIN10")


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


OWN_FUNCTION = """\
import torch
from torch.autograd import Variable

def slopes(labels):
    return labels.float().cumsum(0) - 1

def loss(errors, labels, scale):
    return torch.dot(errors, Variable(slopes(labels)))

errors = torch.ones(3, requires_grad=True)
value = loss(errors, torch.arange(3), torch.nn.Parameter(torch.ones(())))
value.backward()
"""


def test_what_a_function_of_the_file_makes_of_data_has_no_graph() -> None:
    after = fixed(OWN_FUNCTION, "TRAIN10")
    assert "torch.dot(errors, slopes(labels))" in after
    assert torch.equal(run(OWN_FUNCTION)["errors"].grad, run(after)["errors"].grad)  # type: ignore[attr-defined]
    of_a_weight = OWN_FUNCTION.replace(
        "Variable(slopes(labels))", "Variable(slopes(labels) * torch.nn.Linear(1, 1).weight)"
    )
    assert ".weight).detach()" in fixed(of_a_weight, "TRAIN10")


def test_a_pair_with_an_empty_volatile_goes_where_gradients_are_off() -> None:
    off = OF_A_BATCH.replace(
        "Variable(batch[0]), Variable(batch[1])", "Variable(inputs, volatile=True), Variable(labels)"
    )
    off = off.replace("for batch in", "for inputs, labels in").replace("def train", "@torch.no_grad()\ndef train")
    assert "inputs, labels =" not in fixed(off, "TRAIN10")
