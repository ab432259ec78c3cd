"""XFER01: what happens to a tensor between the line that makes it and its copy."""

from __future__ import annotations

from textwrap import dedent

import pytest
import torch

from tests.support import findings, fixed

_PAIR = """
    import torch

    def targets(cuda):
        one = torch.FloatTensor([1])
        minus = one * -1
        {between}
        if cuda:
            one, minus = one.cuda(), minus.cuda()
        return one, minus
"""


def test_what_is_computed_from_a_tensor_for_another_copy_is_no_use_of_the_host() -> None:
    assert [finding.line for finding in findings(_PAIR.format(between="pass"), "XFER01")] == [4]
    assert findings(_PAIR.format(between="print(one)"), "XFER01") == []
    assert findings(_PAIR.format(between="print(minus)"), "XFER01") == []


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        ("mask[:, 0] = 1", 1),
        ("mask[0] = -1.5", 1),
        ("mask[:, :n] = 0", 1),
        ("rows = [i + 1 for i in range(n)]; mask[rows, rows] = 1", 1),
        ("rows = [table[value] for value in values]; mask[rows, rows] = 1", 0),
        ("table = {x: i for i, x in enumerate(values)}; mask[[table[x] for x in values], 0] = 1", 1),
        ("mask[0] = values[0]", 0),
        ("mask[values > 0] = 1", 0),
        ("for i in range(n): mask[i, :i] = 1", 0),
        ("n = mask[0] + 1", 0),
    ],
)
def test_a_tensor_whose_parts_are_set_to_numbers(fill: str, found: int) -> None:
    code = f"""
        import torch

        def build(n, values):
            mask = torch.zeros(n, n)
            {fill}
            return mask.cuda()
    """
    assert len(findings(code, "XFER01")) == found
    assert "return mask.cuda()" in fixed(code, "XFER01")


_MOVED_LATER = """
    import numpy as np
    import torch
    from torch import nn
    from torch.autograd import Variable

    class Solver:
        def __init__(self, config):
            self.n, self.region, self.label = config.n, config["region"], 1

        def run(self, x, cuda):
            {made}
            {between}
            if cuda:
                made = made.cuda()
            return made
"""


@pytest.mark.parametrize(
    ("made", "between"),
    [
        ("made = Variable(torch.arange(0, 4), requires_grad=False)", "pass"),
        ("made = torch.zeros(4, requires_grad=False)", "pass"),
        ("made = Variable(torch.FloatTensor(self.n))", "_ = made.data.fill_(self.label)"),
        ("made = torch.FloatTensor(self.n)", "made.uniform_(0, 1)"),
        ("made = torch.zeros(4).requires_grad_(False)", "pass"),
        ("made = torch.FloatTensor(x.size() + (4,)).zero_()", "pass"),
        ("made = torch.rand(4, 2)", "made.mul_(2).sub_(1)"),
        ("made = torch.empty(4, 2)", "nn.init.normal_(made)"),
        ("made = torch.rand(4, 2)", "made[:, 0] *= self.region[0][1] - self.region[0][0]"),
        ("made = torch.rand(4, 2)", "for i in range(2): made[:, i] += self.region[i][0]"),
        ("made = torch.zeros(1, 4)", "made[0][self.region[self.label]] = 0."),
        ("made = torch.zeros(9, 4)", "for i in range(9): made[i] = self.net(x.cuda())"),
        ("made = torch.zeros(4, 9)", "made.scatter_(1, x.long().cpu().unsqueeze(1), 1)"),
        ("made = torch.zeros(4, 9)", "made = made.scatter_(1, x.long().cpu().unsqueeze(1), 1)"),
        ("made = torch.zeros(4, 9)", "places = x.cpu().long(); made = made.scatter_(1, places, 1)"),
    ],
)
def test_what_happens_on_the_way_to_a_copy_under_a_condition(made: str, between: str) -> None:
    code = _MOVED_LATER.format(made=made, between=between)
    assert [finding.line for finding in findings(code, "XFER01")] == [11]
    assert "made = made.cuda()" in fixed(code, "XFER01")


@pytest.mark.parametrize(
    ("made", "between"),
    [
        ("made = Variable(torch.arange(0., 4.), requires_grad=True)", "pass"),
        ("made = torch.zeros(4, requires_grad=cuda)", "pass"),
        ("made = torch.zeros(4).requires_grad_(cuda)", "pass"),
        ("made = torch.zeros(4).requires_grad_()", "pass"),
        ("made = Variable(torch.FloatTensor(self.n))", "print(self.n)"),
        ("made = torch.FloatTensor(x + (4,))", "pass"),
        ("made = torch.rand(4, 2)", "made.mul_(x)"),
        ("made = torch.rand(4, 2)", "made.copy_(x)"),
        ("made = torch.rand(4, 2)", "other = made.mul_(2)"),
        ("made = torch.rand(4, 2)", "made[:, 0] *= self.region[0]"),
        ("made = torch.rand(4, 2)", "made[:, 0] = x"),
        ("made = torch.rand(4, 2)", "for i in range(64): made[:, i] += self.region[i][0]"),
        ("made = torch.zeros(1, 4)", "made[0][x] = 0."),
        ("made = torch.zeros(9, 4)", "for i in range(9): made[i] = x"),
        ("made = torch.zeros(4, 9)", "made.scatter_(1, x.long().unsqueeze(1), 1)"),
        ("made = torch.zeros(4, 9)", "made = made.scatter_(1, x.long(), 1)"),
        ("made = torch.zeros(4, 9)", "made = made.scatter(1, x.cpu().long(), 1)"),
    ],
)
def test_data_that_comes_in_on_the_way_to_a_copy(made: str, between: str) -> None:
    assert findings(_MOVED_LATER.format(made=made, between=between), "XFER01") == []


def test_a_tensor_that_another_is_made_like() -> None:
    code = """
        import torch

        def grid(net, cuda):
            x = torch.linspace(0, 1, 100)
            t = torch.ones_like(x) * 2
            {between}
            if cuda:
                x = x.cuda()
                t = t.cuda()
            return net(x, t)
    """
    assert [finding.line for finding in findings(code.format(between="pass"), "XFER01")] == [4, 5]
    assert findings(code.format(between="print(t)"), "XFER01") == []


def test_a_copy_under_a_condition_on_one_line_has_no_fix() -> None:
    code = """
        import torch

        def one_hot(x):
            made = torch.zeros(4)
            if x.is_cuda: made = made.cuda()
            return made
    """
    assert [finding.line for finding in findings(code, "XFER01")] == [4]
    assert "if x.is_cuda: made = made.cuda()" in fixed(code, "XFER01")


@pytest.mark.parametrize(
    ("empty", "made"),
    [
        ("torch.FloatTensor()", 'torch.empty(0, dtype=torch.float32, device="cuda")'),
        ("torch.LongTensor()", 'torch.empty(0, dtype=torch.long, device="cuda")'),
        ("torch.Tensor()", 'torch.empty(0, device="cuda")'),
    ],
)
def test_a_tensor_without_elements_to_which_batches_are_added(empty: str, made: str) -> None:
    code = f"""
        import torch

        def outputs(batches):
            found = {empty}
            found = found.cuda()
            for batch in batches:
                found = torch.cat((found, batch.cuda()), 0)
            return found
    """
    assert [finding.line for finding in findings(code, "XFER01")] == [4]
    after = fixed(code, "XFER01", unsafe=False)
    assert f"    found = {made}\n    for" in after
    before: torch.Tensor = eval(empty)
    on_host: torch.Tensor = eval(made.replace("cuda", "cpu"))
    assert (on_host.dtype, on_host.shape) == (before.dtype, before.shape)


_HOLDERS = """
    import torch
    from torch.autograd import Variable

    def train(opt, loader):
        images = torch.FloatTensor(opt.batch, 3, opt.size, opt.size)
        labels = torch.FloatTensor({labels})
        labels = Variable(labels)
        if opt.cuda:
            images, labels = images.cuda(), labels.cuda()
        for batch in loader:
            images.resize_(batch.size()).copy_(batch)
            labels.data.resize_(batch.size(0)).fill_(1)
"""


@pytest.mark.parametrize(
    ("labels", "lines"),
    [("opt.batch", [5, 6]), ("opt.size", [5, 6]), ("opt.targets", [5]), ("opt.batch, 1", [5, 6])],
)
def test_what_is_one_of_several_sizes_elsewhere_is_a_size(labels: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(_HOLDERS.format(labels=labels), "XFER01")] == lines


_BRANCHES = """
    import torch

    def measure(model, rate, samples, kind, data):
        if kind == "long":
            made = torch.rand(1, 1, samples) * 2 - 1
        else:
            made = {other}
        if rate:
            made = made.to("cuda:0")
        return model(made)
"""


@pytest.mark.parametrize(
    ("other", "lines"),
    [
        pytest.param("torch.zeros(1, 1, rate)", [5, 7], id="another tensor"),
        pytest.param("torch.rand(4) + torch.rand(4)", [5, 7], id="a sum in the other branch counts once"),
        pytest.param("None", [5], id="nothing"),
        pytest.param("data", [], id="data"),
        pytest.param("data.mean()", [], id="computed from data"),
    ],
)
def test_each_branch_that_makes_a_tensor_for_the_copy(other: str, lines: list[int]) -> None:
    code = _BRANCHES.format(other=other)
    assert [finding.line for finding in findings(code, "XFER01")] == lines
    assert fixed(code, "XFER01") == dedent(code).removeprefix("\n")


DRAWN = """
import torch
from torch.distributions import Categorical, Normal, Uniform

shared = Normal(0, 1)


class Noise(torch.nn.Module):
    def __init__(self, scale, other=None):
        super().__init__()
        self.normal = Normal(0.0, 2 * 0.5)
        self.scaled = Normal(0.0, scale)
        self.taken = Normal(0, 1)
        if other is not None:
            self.taken = other

    def forward(self, x, scores, device):
        return {drawn}.to(device)
"""


@pytest.mark.parametrize(
    ("drawn", "count"),
    [
        ("Uniform(-1, 1).sample([x.size(0), 8])", 1),
        ("torch.distributions.uniform.Uniform(low=-1, high=1).sample((8,))", 1),
        ("self.normal.sample(x.size())", 1),
        ("self.normal.rsample(x.size()).unsqueeze(1)", 1),
        ("shared.sample(x.size())", 1),
        ("self.taken.sample(x.size())", 0),
        ("self.scaled.sample(x.size())", 0),
        ("Categorical(scores).sample()", 0),
        ("Normal(x, 1).sample()", 0),
        ("Normal(*scores).sample()", 0),
        ("Uniform(-1, 1).log_prob(x)", 0),
    ],
)
def test_a_distribution_of_numbers_draws_on_the_host_and_is_left_to_its_author(drawn: str, count: int) -> None:
    code = DRAWN.format(drawn=drawn)
    found = findings(code, "XFER01")
    assert len(found) == count
    assert all(finding.message.startswith("A distribution draws") and finding.fix is None for finding in found)
    assert fixed(code, "XFER01").strip() == code.strip()


@pytest.mark.parametrize(
    ("default", "made", "count"),
    [
        ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", "torch.FloatTensor(n, 3)", 1),
        ('torch.set_default_device("cuda")', "torch.LongTensor(n, 3).zero_()", 1),
        ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", "torch.Tensor(n, 3)", 0),
        ('torch.set_default_device("cuda")', "torch.zeros(n, 3)", 0),
    ],
)
def test_classes_of_the_host_make_tensors_there_whatever_the_default_is(default: str, made: str, count: int) -> None:
    code = f"import torch\n\n{default}\n\ndef build(n):\n    return {made}.cuda()\n"
    assert len(findings(code, "XFER01")) == count


IN_LOOP = """
import torch


def train(model, batches, n, gpu):
    x = {made}
    for batch in batches:
        {then}
        x.data.copy_(batch)
        model(x)
"""


@pytest.mark.parametrize(
    ("made", "then", "count"),
    [
        ("torch.zeros(n, 3)", "if gpu: x = x.cuda()", 1),
        ("torch.zeros(n, 3)", "x = x.cuda()", 1),
        ("batches[0]", "x = x.cuda()", 0),
        ("torch.zeros(n, 3)", "x = batch\n        x = x.cuda()", 0),
        ("torch.zeros(n, 3)", "x = model(x).cuda()", 0),
    ],
)
def test_a_tensor_that_a_loop_copies_once_and_then_finds_on_the_device(made: str, then: str, count: int) -> None:
    code = IN_LOOP.format(made=made, then=then)
    assert len(findings(code, "XFER01")) == count
    assert fixed(code, "XFER01").strip() == code.strip()


@pytest.mark.parametrize(("spread", "count"), [("std", 1), ("0.5", 1), ("data", 0), ("std[0]", 0)])
def test_noise_about_a_tensor_of_zeros_is_drawn_of_numbers(spread: str, count: int) -> None:
    code = f"""
    import torch
    def noise(x, n, std, data: torch.Tensor):
        return torch.normal(mean=torch.zeros(n), std={spread}).cuda()
    """
    assert len(findings(code, "XFER01")) == count


@pytest.mark.parametrize(
    ("beside", "is_alike"),
    [
        ("low = torch.tensor(LOWEST).to(device)", True),
        ("low = torch.tensor(LOWEST).to(other)", False),
        ("low = torch.from_numpy(LOWEST).to(device)", False),
    ],
)
def test_like_lines_are_made_on_the_device_together(beside: str, is_alike: bool) -> None:
    code = (
        "import torch\nfrom limits import LOWEST\n\n\ndef start(x, device, other):\n    y = x.cuda()\n"
        f"    {beside}\n    zero = torch.tensor(0.0).to(device)\n    return y, zero, low\n"
    )
    after = fixed(code, "XFER01")
    assert "zero = torch.zeros((), device=device)" in after
    assert ("low = torch.tensor(LOWEST, device=device)" in after) is is_alike
    assert (beside in after) is not is_alike


@pytest.mark.parametrize("read", ["int(index.item())", "index.tolist()", "index + 1"])
def test_what_the_host_reads_back_at_once_stays_there(read: str) -> None:
    code = (
        "import torch\n\n\ndef pick(x, device):\n    y = x.cuda()\n"
        "    index = torch.zeros(1).to(device)\n"
        f"    index = {read} if index is not None else None\n    return y, index\n"
    )
    assert ("device=device" in fixed(code, "XFER01")) is ("+" in read)


TRIED = """
import torch

def works(device):
    {tried}
        x = torch.tensor([1.0, 2.0])
        x = x.to(device)
    {caught}
    {after}

device = torch.device("cuda")
works(device)
"""


@pytest.mark.parametrize(
    ("tried", "caught", "after", "count"),
    [
        ("try:", "except RuntimeError as error:\n        print(error)", "pass", 0),
        ("try:", "except RuntimeError as error:\n        print(error)", "return x", 1),
        ("try:", "finally:\n        print(device)", "pass", 1),
        ("if device:", "", "pass", 1),
    ],
)
def test_a_copy_that_tries_the_device_out(tried: str, caught: str, after: str, count: int) -> None:
    code = TRIED.format(tried=tried, caught=caught, after=after)
    assert len(findings(code, "XFER01")) == count


@pytest.mark.parametrize(("read", "count"), [("", 0), ("    return x\n", 1)])
def test_a_copy_that_tries_the_device_out_on_one_line(read: str, count: int) -> None:
    code = "import torch\n\ndef works(device):\n    try: x = torch.ones(2).to(device)\n"
    code += f"    except RuntimeError: print(device)\n{read}\nworks(torch.device('cuda'))\n"
    assert len(findings(code, "XFER01")) == count
