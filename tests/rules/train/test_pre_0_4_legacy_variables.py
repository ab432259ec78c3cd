"""TRAIN10: the fix takes `Variable` and `volatile` away, and detaches where a graph may be."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.train.legacy_idioms import OF_A_BATCH, SETUP, run
from tests.support import findings, fixed


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
        ("y = Variable(net(batch).long().data)", "y = net(batch).long()"),
        ("y = Variable(net(batch).argmax(1).data)", "y = net(batch).argmax(1)"),
        ("y = Variable(batch['y'].float())", "y = batch['y'].float()"),
        ("y = Variable(batch['y'].float()); y.grad", "y = batch['y'].float().detach(); y.grad"),
        ("batch = y = Variable(batch.float())", "batch = y = batch.float()"),
        ("batch = Variable(batch, requires_grad=False); y = 2 * batch", "y = 2 * batch"),
        ("batch = net(batch); y = Variable(batch)", "batch = net(batch); y = batch.detach()"),
        (
            "y = torch.zeros(3, 4).float(); y = y.scatter_(1, batch, 1.0); y = Variable(y)",
            "y = torch.zeros(3, 4).float(); y = y.scatter_(1, batch, 1.0)",
        ),
        (
            "known.view(-1); y = Variable(torch.from_numpy(known).to(0), requires_grad=True)",
            "known.view(-1); y = torch.from_numpy(known).to(0).requires_grad_()",
        ),
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
    assert "for inputs, labels in" in fixed(code, "TRAIN10")
    assert "labels = y.detach()\n" in fixed(code.replace("(y)\n", f"(y)\n        {line}\n"), "TRAIN10")


def test_the_switch_of_a_parameter_makes_no_leaf_of_a_batch() -> None:
    frozen = OF_A_BATCH + "    for p in net.parameters():\n        p.requires_grad = False\n"
    assert "inputs, labels = batch[0], batch[1]\n" in fixed(frozen, "TRAIN10")


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


RENEWED = """
import torch
from torch.autograd import Variable


def run(net, x):
    point = torch.cat((x, x), dim=1){cut}
    {between}
    point = Variable(point, requires_grad=True)
    point.pow(3).sum().backward()
    return [point, point.grad]
"""


@pytest.mark.parametrize(
    ("cut", "between", "after"),
    [
        (".data", "pass", "point = point.requires_grad_()"),
        (".detach()", "pass", "point = point.requires_grad_()"),
        (".detach()", "kept = point", "point = point.detach().requires_grad_()"),
        ("", "pass", "point = point.detach().requires_grad_()"),
    ],
)
def test_a_tensor_that_is_cut_off_for_it_is_not_cut_off_again(cut: str, between: str, after: str) -> None:
    code = RENEWED.format(cut=cut, between=between)
    new = fixed(code, "TRAIN10")
    assert after in new
    made = []
    for text in (code, new):
        names: dict[str, Any] = {}
        exec(text, names)
        made.append(names["run"](None, torch.arange(6.0).view(2, 3)))
    assert all(torch.equal(before, now) and before.requires_grad is now.requires_grad for before, now in zip(*made))


@pytest.mark.parametrize(
    ("base", "made", "found"),
    [
        ("autograd.Variable", "Moved(x)", "has had no purpose"),
        ("autograd.Variable", "Moved(x, volatile=True)", "`volatile` has no effect"),
        ("autograd.Function", "Moved(x)", None),
        ("object", "Moved(x)", None),
    ],
)
def test_a_class_that_derives_from_variable(base: str, made: str, found: str | None) -> None:
    code = f"""
        import torch
        from torch import autograd

        class Moved({base}):
            def __init__(self, data, *args, **kwargs):
                super().__init__(data.cuda(), *args, **kwargs)

        def step(net, x):
            return net({made})
        """
    assert [found in finding.message for finding in findings(code, "TRAIN10") if found] == [True] * bool(found)
    assert bool(findings(code, "TRAIN10")) == bool(found)


@pytest.mark.parametrize(("holder", "count"), [("_parameters", 1), ("parts", 0)])
def test_a_parameter_by_its_name(holder: str, count: int) -> None:
    code = f"import torch\n\ndef widths(layer, name):\n    return layer.{holder}[name].data * 2\n"
    assert len(findings(code, "TRAIN10")) == count


LISTED = """\
import torch
from torch.autograd import Variable


def run(net, x):
    a, b = [torch.DoubleTensor(each) for each in [[1.0, 2.0], [3.0]]]
    {wrapped}
    return [a, b]
"""


@pytest.mark.parametrize(
    ("wrapped", "after"),
    [
        ("a, b = [Variable(each) for each in [a, b]]", ""),
        ("b, a = [Variable(each) for each in [a, b]]", None),
        ("a, b = [Variable(each) for each in [a, b] if len(each)]", "a, b = [each for each in [a, b] if len(each)]"),
        ("a, b = [Variable(2 * each) for each in [a, b]]", "a, b = [2 * each for each in [a, b]]"),
    ],
)
def test_a_list_of_which_nothing_but_a_copy_is_left(wrapped: str, after: str | None) -> None:
    code = LISTED.format(wrapped=wrapped)
    expected = code if after is None else LISTED.format(wrapped=after).replace("    \n", "")
    assert fixed(code, "TRAIN10").replace("from torch.autograd import Variable\n", "") == expected.replace(
        "from torch.autograd import Variable\n", ""
    )


@pytest.mark.parametrize(
    ("made", "after"),
    [
        ("Variable(torch.zeros(2, 3), requires_grad=True)", "torch.zeros(2, 3, requires_grad=True)"),
        ("Variable(torch.ones(*[2, 3]), requires_grad=True)", "torch.ones(*[2, 3], requires_grad=True)"),
        ("Variable(torch.zeros(2, 3) + 1, requires_grad=True)", "(torch.zeros(2, 3) + 1).requires_grad_()"),
        ("Variable(torch.zeros(2, 3).double(), requires_grad=True)", "torch.zeros(2, 3).double().requires_grad_()"),
        ("Variable(torch.FloatTensor([1.0]), requires_grad=True)", "torch.FloatTensor([1.0]).requires_grad_()"),
    ],
)
def test_a_factory_makes_a_leaf_with_gradients_by_itself(made: str, after: str) -> None:
    code = f"import torch\nfrom torch.autograd import Variable\n\nx = {made}\nprint(x)\n"
    assert f"x = {after}\n" in fixed(code, "TRAIN10")
    names = {"torch": torch, "Variable": torch.autograd.Variable}
    leaves = [eval(text, dict(names)) for text in (made, after)]
    assert torch.equal(*leaves)
    assert all(leaf.is_leaf and leaf.requires_grad for leaf in leaves)


def test_an_else_on_one_line_that_nothing_is_left_of_goes() -> None:
    head = "import torch\nfrom torch.autograd import Variable\nfrom torch.utils.data import DataLoader\n"
    head += "def run(images, net, use_gpu):\n    loader = DataLoader(images)\n"
    body = "    for x, y in loader:\n        if use_gpu:\n            x = Variable(x.cuda())\n"
    after = fixed(head + body + "        else: x = Variable(x)\n        print(net(x))\n", "TRAIN10")
    assert "else" not in after
    assert "Variable(" not in after
    assert "            x = x.cuda()\n        print(net(x))\n" in after


ALIASED = """
import torch
from torch import nn
from torch.autograd import Variable

def run(loader, net):
    seen = []
    for image in loader:
        image = image + 1
        NAME = Variable(image)
        MORE
        seen.append(net(NAME).sum())
        seen.append(NAME.size(0) * image.sum())
    return seen
"""


@pytest.mark.parametrize(
    ("name", "more", "is_gone"),
    [
        ("image_var", "pass", True),
        ("var_image", "pass", True),
        ("image_variable", "pass", True),
        ("shown", "pass", False),
        ("image_var", "image = image * 2", False),
        ("image_var", "image_var = image_var * 2", False),
        ("image_var", "seen.append(lambda: image_var)", False),
    ],
)
def test_a_name_that_only_says_variable_goes_with_it(name: str, more: str, is_gone: bool) -> None:
    code = ALIASED.replace("NAME", name).replace("MORE", more)
    after = fixed(code, "TRAIN10")
    assert "Variable(" not in after
    assert (name not in after) is is_gone
    results = []
    for program in (code, after):
        space: dict[str, Any] = {}
        exec(program, space)
        results.append(space["run"]([torch.ones(2, 3)], lambda x: x.exp()))
    assert all(callable(one) or torch.equal(one, other) for one, other in zip(*results))


def test_a_name_that_only_says_data_goes_with_it() -> None:
    head = "import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\n\ndef run(priors):\n    with torch.no_grad():\n"
    code = "        priors = net(priors)\n        prior_data = priors.data\n        return prior_data[0] + 1\n"
    after = "        priors = net(priors)\n        return priors[0] + 1\n"
    assert fixed(head + code, "TRAIN10") == head + after
    graph = head.replace("no_grad", "enable_grad")
    assert "prior_data = priors.detach()" in fixed(graph + code, "TRAIN10")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_detached_and_moved_is_not_detached_again(dtype: torch.dtype) -> None:
    code = "import torch\nfrom torch.autograd import Variable\n\n\ndef leaf(x, kind):\n    return {}\n"
    after = fixed(code.format("Variable((torch.exp(x).data).type(kind), requires_grad=True)"), "TRAIN10")
    assert "return (torch.exp(x).detach()).type(kind).requires_grad_()\n" in after
    names: dict[str, Any] = {}
    exec(after, names)
    x = torch.ones(2, dtype=dtype, requires_grad=True)
    leaf = names["leaf"](x, torch.float64)
    assert leaf.is_leaf
    leaf.sum().backward()
    assert x.grad is None


DRAWN = """\
from torch import nn
from torch.autograd import Variable
from torch.utils.data import DataLoader


def attack(net, dataset):
    kept = []
    for x, y in DataLoader(dataset, batch_size=2):
        LINE
        x = Variable(x, requires_grad=True)
        nn.functional.cross_entropy(net(x), y).backward()
        yield x.grad, kept
"""


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("print(x.shape, x.mean())", "x = x.requires_grad_()"),
        ("raw = x", "x = x.detach().requires_grad_()"),
        ("raw = x.view(-1)", "x = x.detach().requires_grad_()"),
        ("kept.append(x)", "x = x.detach().requires_grad_()"),
    ],
)
def test_a_batch_that_something_else_holds_does_not_become_a_leaf_itself(line: str, after: str) -> None:
    new = fixed(DRAWN.replace("LINE", line), "TRAIN10")
    assert f"        {after}\n" in new


@pytest.mark.parametrize(
    ("made", "between", "after"),
    [
        ("torch.rand(3)", "", "q = q.requires_grad_()"),
        ("torch.rand(3)", "kept = q\n", "q = q.detach().requires_grad_()"),
        ("w * 2", "", "q = q.detach().requires_grad_()"),
    ],
    ids=["made for it", "of two names", "with a graph"],
)
def test_a_new_tensor_asks_for_gradients_itself_where_nothing_else_holds_it(
    made: str, between: str, after: str
) -> None:
    code = "import torch\nfrom torch.autograd import Variable\n\nw = torch.ones(3, requires_grad=True)\n"
    code += f"q = {made}\n{between}q = Variable(q, requires_grad=True)\n(q * 2).sum().backward()\nprint(q.grad)\n"
    assert after in fixed(code, "TRAIN10")


@pytest.mark.parametrize(
    ("lines", "is_bare"),
    [
        ("image.unsqueeze_(0)\n    v = Variable(image, requires_grad=wanted)\n    return v", True),
        ("v = Variable(image, requires_grad=wanted)\n    return v, image", False),
        ("kept.append(image)\n    v = Variable(image, requires_grad=wanted)\n    return v", False),
        ("for _ in kept:\n        v = Variable(image, requires_grad=wanted)\n    return v", False),
    ],
    ids=["used last", "read again", "held elsewhere", "once for each"],
)
def test_a_tensor_of_ones_own_asks_for_gradients_itself(lines: str, is_bare: bool) -> None:
    code = "import torch\nfrom torch.autograd import Variable\n\ndef image_of(array, kept, wanted):\n"
    code += f"    image = torch.from_numpy(array)\n    image = image.cuda()\n    {lines}\n"
    after = fixed(code, "TRAIN10")
    assert ("image.requires_grad_(wanted)" in after) is is_bare
    assert ("image.detach().requires_grad_(wanted)" in after) is not is_bare


HELD = """\
import torch
from torch.autograd import Variable

def extract(model, rows, read):
    held = torch.zeros(1, 3)
    for row in rows:
        held[0] = read(row)
        given = Variable(held.double(), volatile=True)
        FIRST
        with torch.no_grad():
            out = model(given)
        print(out)
"""


@pytest.mark.parametrize(("first", "is_bare"), [("print(row)", True), ("print(given)", False)])
def test_what_was_to_have_no_graph_needs_none_cut_off_where_only_no_grad_reads_it(first: str, is_bare: bool) -> None:
    after = fixed(HELD.replace("held.double()", "held").replace("FIRST", first), "TRAIN10", unsafe=True)
    assert ("model(held)" in after) is is_bare
