"""XFER01: tensors that are made on the host and copied."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source


@pytest.mark.parametrize(
    ("device", "found"),
    [
        ('f"cuda:{rank}"', 1),
        ('f"{kind}:{rank}"', 0),
        ('f"mps:{rank}"', 0),
        ('"cuda:%d" % rank', 1),
        ('"cuda:" + str(rank)', 1),
        ('"cuda:{}".format(rank)', 1),
        ('"cpu:%d" % rank', 0),
        ('"cuda" if torch.cuda.is_available() else "cpu"', 1),
        ('"mps" if kind else "cpu"', 0),
        ("kind.get_device()", 1),
        ("torch.distributed.get_rank()", 1),
        ("kind.fastest()", 0),
    ],
)
def test_devices_that_are_written_in_other_ways(device: str, found: int) -> None:
    code = f"import torch\n\ndef totals(rank, kind):\n    return torch.zeros(2).to({device})\n"
    assert len(findings(code, "XFER01")) == found
    assert fixed(code, "XFER01").count(f"torch.zeros(2, device={device})") == found


def _function(expression: str) -> str:
    return f'import torch\n\ndef build(n, x, values, device="cuda"):\n    return {expression}\n'


@pytest.mark.parametrize(
    ("made", "instead"),
    [
        ("torch.tensor(0.).cuda()", 'torch.zeros((), device="cuda")'),
        ("torch.tensor(0).float().cuda()", 'torch.zeros((), dtype=torch.float, device="cuda")'),
        ("torch.tensor(0).cuda()", 'torch.full((), 0, device="cuda")'),
        ("torch.tensor(-0.).cuda()", 'torch.full((), -0., device="cuda")'),
        ("torch.tensor(0.1).double().cuda()", 'torch.full((), 0.1, device="cuda").double()'),
        ("torch.tensor(300).byte().cuda()", 'torch.full((), 300, device="cuda").byte()'),
        ("torch.tensor(-1, dtype=torch.float).cuda()", 'torch.full((), -1, dtype=torch.float, device="cuda")'),
        ("torch.tensor([1., 0.]).cuda()", 'torch.tensor([1., 0.], device="cuda")'),
        ("torch.tensor([[2, 2], [2, 2]]).cuda()", 'torch.tensor([[2, 2], [2, 2]], device="cuda")'),
        (
            "torch.FloatTensor([[2, 2],\n                              [2, 2]]).cuda()",
            'torch.tensor([[2, 2],\n                         [2, 2]], dtype=torch.float32, device="cuda")',
        ),
        (
            "torch.Tensor([[2.5],\n                         [2]]).cuda()",
            'torch.tensor([[2.5],\n                         [2]], device="cuda")',
        ),
        ("torch.FloatTensor([1]).cuda()", 'torch.ones((1,), dtype=torch.float32, device="cuda")'),
        ("torch.FloatTensor([1, 2]).cuda()", 'torch.tensor([1, 2], dtype=torch.float32, device="cuda")'),
        ("torch.LongTensor(range(0, 5)).cuda()", 'torch.tensor(range(0, 5), dtype=torch.int64, device="cuda")'),
        ("torch.Tensor([0.5, 1]).cuda()", 'torch.tensor([0.5, 1], device="cuda")'),
        ("torch.tensor([7] * n).cuda()", 'torch.tensor([7] * n, device="cuda")'),
        ("torch.zeros(n).type_as(x)", "torch.zeros(n, dtype=x.dtype, device=x.device)"),
        ("torch.arange(5).type_as(x)", "torch.arange(5, device=x.device).to(x.dtype)"),
    ],
)
def test_fixes_of_numbers_make_the_same_tensor(made: str, instead: str) -> None:
    """Compared on the host, which stands in for the GPU."""
    after = fixed(_function(made), "XFER01", unsafe=False)
    assert after == _function(instead)
    tensors = []
    for code in (made.replace(".cuda()", ""), instead.replace('"cuda"', '"cpu"')):
        scope: dict[str, object] = {"torch": torch, "n": 3, "x": torch.ones(2, dtype=torch.float16)}
        exec(_function(code), scope)
        tensors.append(scope["build"](3, scope["x"], None))  # type: ignore[operator]
    before, now = tensors
    if "zeros(n)" in made:
        before, now = before + 1, now + 1
    assert before.dtype == now.dtype
    assert torch.equal(before, now)


@pytest.mark.parametrize(
    "made",
    ["torch.Tensor([1, 2]).cuda()", "torch.LongTensor([1.5, 2]).cuda()", "torch.ByteTensor([1, 300]).cuda()"],
)
def test_classes_that_convert_in_their_own_way_are_left_as_they_are(made: str) -> None:
    assert len(findings(_function(made), "XFER01")) == 1
    assert fixed(_function(made), "XFER01") == _function(made)


@pytest.mark.parametrize(
    "data",
    [
        "torch.tensor(values).cuda()",
        "torch.tensor([values]).cuda()",
        "torch.tensor([row[0] for row in values]).cuda()",
        "torch.FloatTensor(values).cuda()",
        "torch.tensor([]).cuda()",
        "torch.tensor(0., requires_grad=True).cuda()",
        "torch.zeros(n).type_as(x.cpu())",
        "torch.zeros(n).to(torch.float16)",
        "torch.tensor([1., 0.]).numpy()",
        "torch.zeros_like(x).to(x.device)",
        "(torch.ones(n) * values.mean()).cuda()",
    ],
)
def test_data_and_what_stays_on_the_host_is_left_alone(data: str) -> None:
    assert findings(_function(data), "XFER01") == []


def test_what_looks_like_a_number_may_be_computed_with_but_is_not_fixed() -> None:
    code = """
        import torch

        def sample(model, x, steps):
            for step in reversed(steps):
                t = (torch.ones(len(x)) * step).to(x.device)
                x = model(x, t)
            return x
    """
    assert [finding.line for finding in findings(code, "XFER01")] == [5]
    assert "(torch.ones(len(x)) * step).to(x.device)" in fixed(code, "XFER01")


@pytest.mark.parametrize("use", ["scale[0]", "scale.mean()", "[s for s in scale]", "len(*scale)"])
def test_what_is_taken_apart_is_no_number(use: str) -> None:
    code = f"""
        import torch

        def noise(n, scale):
            print({use})
            return (torch.ones(n) * scale).cuda()
    """
    assert findings(code, "XFER01") == []


def test_numbers_of_a_distribution_with_a_size_are_numbers() -> None:
    code = _function("torch.normal(n, x, size=(3, 4)).cuda()")
    assert len(findings(code, "XFER01")) == 1
    assert findings(_function("torch.normal(n, x).cuda()"), "XFER01") == []


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


_HELPER = """
    import torch

    def mask(n):
        upper = torch.triu(torch.ones(n, n)) == 1
        {between}
        return upper.float().masked_fill(upper == 0, float("-inf"))

    def attend(model, x, device):
        return model(x, mask(len(x)).to(device))
"""


def test_a_function_that_makes_a_tensor_for_its_callers() -> None:
    [finding] = findings(_HELPER.format(between="pass"), "XFER01")
    assert finding.line == 9
    assert "pass it the device" in finding.message
    assert fixed(_HELPER.format(between="pass"), "XFER01").count("mask(len(x)).to(device)") == 1
    assert findings(_HELPER.format(between="print(upper)"), "XFER01") == []


def test_a_tensor_that_is_made_here_and_by_a_function_has_no_fix() -> None:
    code = _HELPER.format(between="pass").replace("mask(len(x))", "(torch.ones(4, 4) + mask(4))")
    [finding] = findings(code, "XFER01")
    assert "`torch.ones` fills this tensor" in finding.message
    assert "(torch.ones(4, 4) + mask(4)).to(device)" in fixed(code, "XFER01")


@pytest.mark.parametrize("decorator", ["@functools.lru_cache", "@register"])
def test_a_function_behind_a_decorator_may_return_anything(decorator: str) -> None:
    code = _HELPER.format(between="pass").replace("def mask", f"{decorator}\n    def mask", 1)
    assert findings(code.replace("import torch", "import functools, torch", 1), "XFER01") == []


def test_hidden_states_that_a_method_makes_and_the_loop_copies() -> None:
    code = """
        import torch
        from torch import nn

        class Recurrent(nn.Module):
            def hidden(self, n):
                return torch.zeros(1, n, 8), torch.zeros(1, n, 8)

        def train(x, use_cuda):
            model = Recurrent().cuda()
            h, c = model.hidden(len(x))
            h, c = h.cuda(), c.cuda()
            states = [torch.zeros(3) for _ in x]
            states = [state.cuda() for state in states]
            pair = torch.zeros(3), torch.zeros(4)
            return model(x, h, c), states, pair[0].cuda(), pair[1].cuda()
    """
    assert [finding.line for finding in findings(code, "XFER01")] == [10, 12, 14, 14]


def test_a_function_of_another_file_that_makes_a_tensor(tmp_path: Path) -> None:
    (tmp_path / "masks.py").write_text("import torch\n\ndef ones(n):\n    return torch.ones(n, n).tril()\n")
    main = """
import torch
from masks import ones

def fit(model, x, device):
    model(x, ones(len(x)).to(device)).sum().backward()
"""
    (tmp_path / "main.py").write_text(main)
    source = Source.from_text(main, tmp_path / "main.py")
    found = lint(source, Settings.selecting("XFER01"), strict=True, project=Project())
    assert [finding.line for finding in found] == [6]


@pytest.mark.parametrize(
    ("default", "found"),
    [
        ("torch.set_default_tensor_type(torch.DoubleTensor)", 1),
        ('torch.set_default_tensor_type("torch.FloatTensor")', 1),
        ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", 0),
        ("torch.set_default_tensor_type(kind)", 0),
        ('torch.set_default_device("cuda")', 0),
    ],
)
def test_defaults_that_put_tensors_on_the_device(default: str, found: int) -> None:
    code = f"import torch\n\n{default}\n\ndef build(n):\n    return torch.zeros(n).cuda()\n"
    assert len(findings(code, "XFER01")) == found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "x = torch.arange(n).repeat(2).type(torch.LongTensor)\n    x = x.to(device)\n",
            "x = torch.arange(n, device=device).repeat(2).type(torch.int64)\n",
        ),
        (
            "x = torch.arange(n)\n    x = x.type(torch.FloatTensor).to(device)\n",
            "x = torch.arange(n, device=device)\n    x = x.type(torch.float32)\n",
        ),
        (
            "x = (torch.arange(n) + 1).type(torch.DoubleTensor).to(device)\n",
            "x = (torch.arange(n, device=device) + 1).type(torch.float64)\n",
        ),
    ],
)
def test_a_cast_that_would_bring_the_tensor_back_to_the_host_keeps_its_dtype_alone(before: str, after: str) -> None:
    head, tail = "import torch\n\ndef build(n, device, net):\n    net.cuda()\n    ", "    return net(x)\n"
    assert fixed(head + before + tail, "XFER01") == head + after + tail
    outputs = []
    for body in (before, after):
        namespace: dict[str, Any] = {}
        exec(head.replace("net.cuda()", "pass") + body + tail, namespace)
        outputs.append(namespace["build"](3, "cpu", lambda x: x))
        assert namespace["build"](3, "meta", lambda x: x).is_meta
    assert torch.equal(*outputs)
    assert outputs[0].dtype == outputs[1].dtype


def test_a_cast_to_the_default_class_of_tensors_leaves_the_fix_out() -> None:
    code = "import torch\n\ndef build(n, device):\n    return torch.arange(n).type(torch.Tensor).to(device)\n"
    assert fixed(code, "XFER01") == code


_LIGHTNING = "import pytorch_lightning as pl\nfrom decoder import start\n\npl.Trainer().fit(start)\n"


@pytest.mark.parametrize(
    ("move", "main", "found"),
    [
        (".type_as(batch)", "from decoder import start\n\nstart(net.cuda()(data))\n", 1),
        (".type_as(batch)", "from decoder import start\n\nstart(net.to(device)(data))\n", 1),
        (".type_as(batch)", "from decoder import start\n\nstart(net.train()(data))\n", 0),
        (".type_as(batch)", _LIGHTNING, 1),
        (".type_as(batch)", "import numpy\n\nnet.cuda()\n", 1),  # nobody uses it here: it is for others
        (".type_as(batch)", "import numpy\n\nnet.train()\n", 0),
        (".type(batch.type())", "from decoder import start\n\nstart(net.cuda()(data))\n", 1),
        (".type(batch)", "from decoder import start\n\nstart(net.cuda()(data))\n", 0),
        (".to(batch)", "from decoder import start\n\nstart(net.cuda()(data))\n", 0),
    ],
)
def test_a_file_that_names_no_device_but_is_used_on_one(tmp_path: Path, move: str, main: str, found: int) -> None:
    code = f"import torch\n\n\ndef start(batch):\n    return torch.ones(1, 1){move}\n"
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "decoder.py").write_text(code)
    (tmp_path / "main.py").write_text(main)
    source = Source.from_text(code, tmp_path / "decoder.py")
    assert len(lint(source, Settings.selecting("XFER01"), strict=True, project=Project())) == found


def test_a_part_of_what_is_joined_is_a_tensor() -> None:
    code = _function("torch.cat([x, torch.zeros(n, 2).to(x)])")
    after = fixed(code, "XFER01", unsafe=False)
    assert "torch.cat([x, torch.zeros(n, 2, dtype=x.dtype, device=x.device)])" in after
    assert findings(code.replace("torch.cat", "list"), "XFER01") == []


def test_the_type_of_a_tensor_says_where_it_is() -> None:
    code = "import torch\n\ndef build(n, x):\n    x = x.cuda()\n    return torch.zeros(n).type(x.type())\n"
    assert "return torch.zeros(n, dtype=x.dtype, device=x.device)" in fixed(code, "XFER01", unsafe=False)
    assert findings(code.replace("x.cuda()", "x.cpu()"), "XFER01") == []


@pytest.mark.parametrize("choice", ["FloatTensor", "torch.cuda.FloatTensor if n else torch.FloatTensor"])
def test_a_class_of_tensors_that_may_be_of_the_gpu(choice: str) -> None:
    code = _function(f"torch.zeros(n).type({choice})").replace(
        "    return", "    FloatTensor = torch.cuda.FloatTensor if n else torch.FloatTensor\n    return"
    )
    assert len(findings(code, "XFER01")) == 1
    assert fixed(code, "XFER01") == code
    assert findings(code.replace("torch.cuda.FloatTensor", "torch.HalfTensor"), "XFER01") == []


def test_a_parameter_of_which_only_the_copy_is_kept() -> None:
    code = """
        import torch
        from torch import nn

        class Cell(nn.Module):
            def start(self, n):
                self.peep = nn.Parameter(torch.zeros(1, n)).cuda()
                self.kept = nn.Parameter(torch.zeros(1, n))
                return self.kept.cuda()
    """
    assert [finding.line for finding in findings(code, "XFER01")] == [6]
    assert fixed(code, "XFER01") == fixed(code, "XFER02")


@pytest.mark.parametrize(
    "expression",
    [
        "torch.FloatTensor(torch.zeros(n)).to(device)",
        "torch.Tensor(torch.ones(n).view(1, -1)).to(device)",
        "torch.LongTensor(torch.arange(n) * 2).to(device)",
    ],
)
def test_a_legacy_constructor_is_given_no_tensor_of_a_device(expression: str) -> None:
    code = _function(expression)
    assert fixed(code, "XFER01") == code
    names: dict[str, Any] = {}
    exec(fixed(code, "XFER01"), names)
    assert names["build"](3, None, None, "meta").shape[-1] == 3
    with pytest.raises(TypeError):
        torch.FloatTensor(torch.zeros(3, device="meta"))


def test_a_legacy_constructor_is_given_no_variable_of_a_device() -> None:
    code = _function("torch.FloatTensor(made).to(device)")
    code = code.replace("    return", "    made = torch.zeros(n)\n    return")
    assert fixed(code, "XFER01") == code


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        ("mask[:, 0] = 1", 1),
        ("mask[0] = -1.5", 1),
        ("mask[:, :n] = 0", 1),
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
        ("made = torch.FloatTensor(x.size() + (4,)).zero_()", "pass"),
        ("made = torch.rand(4, 2)", "made.mul_(2).sub_(1)"),
        ("made = torch.empty(4, 2)", "nn.init.normal_(made)"),
        ("made = torch.rand(4, 2)", "made[:, 0] *= self.region[0][1] - self.region[0][0]"),
        ("made = torch.rand(4, 2)", "for i in range(2): made[:, i] += self.region[i][0]"),
        ("made = torch.zeros(1, 4)", "made[0][self.region[self.label]] = 0."),
        ("made = torch.zeros(9, 4)", "for i in range(9): made[i] = self.net(x.cuda())"),
        ("made = torch.zeros(4, 9)", "made.scatter_(1, x.long().cpu().unsqueeze(1), 1)"),
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


_SCHEDULE = """
    import numpy as np
    import torch

    def sample(net, x, count, device, given):
        steps = {steps}
        for index, step in enumerate(steps):
            t = (torch.ones(4) * step).long().to(device)
            last = (torch.ones(4) * steps[index - 1]).long().to(device)
            x = net(x, t, last)
        return x
"""


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        ("np.linspace(count, 1, 20, dtype=int)[:-1]", [7, 8]),
        ("np.arange(0, count, 5)", [7, 8]),
        ("np.load(given)", []),
    ],
)
def test_elements_of_an_array_of_numbers_are_numbers(steps: str, lines: list[int]) -> None:
    code = _SCHEDULE.format(steps=steps)
    assert [finding.line for finding in findings(code, "XFER01")] == lines


def test_a_schedule_of_numbers_gives_the_same_steps_after_the_fix() -> None:
    """Compared on the host, which stands in for the GPU."""
    code = dedent(_SCHEDULE.format(steps="np.linspace(count, 1, 20, dtype=int)[:-1]"))
    after = fixed(code, "XFER01")
    assert "torch.ones(4, device=device) * step" in after
    assert "steps[index - 1]).long().to(device)" in after
    totals = []
    for text in (code, after):
        scope: dict[str, Any] = {}
        exec(text, scope)
        totals.append(scope["sample"](lambda x, t, last: 3 * x + t - last, torch.zeros(4).long(), 99, "cpu", None))
    assert torch.equal(*totals)


def test_constants_wrapped_for_no_gradient_are_made_on_the_device() -> None:
    code = _function("Variable(torch.zeros(n), requires_grad=False).cuda()").replace(
        "import torch\n", "import torch\nfrom torch.autograd import Variable\n", 1
    )
    after = fixed(code, "XFER01", unsafe=False)
    assert 'return Variable(torch.zeros(n, device="cuda"), requires_grad=False)' in after


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
    ("before", "after"),
    [
        ("(torch.arange(4) + 1).to(device)", "torch.arange(4, device=device) + 1"),
        ("[(torch.arange(4) + 1).to(device)]", "[(torch.arange(4, device=device) + 1)]"),
        ("2 * (torch.arange(4) + 1).to(device)", "2 * (torch.arange(4, device=device) + 1)"),
    ],
)
def test_parentheses_go_with_the_copy_that_needed_them(before: str, after: str) -> None:
    code = "import torch\n\ndef build(model, device):\n    model.to(device)\n    x = {}\n    return x\n"
    assert fixed(code.format(before), "XFER01") == code.format(after)


@pytest.mark.parametrize(
    ("empty", "made"),
    [
        ("torch.FloatTensor()", 'torch.empty(0, dtype=torch.float32, device="cuda")'),
        ("torch.LongTensor()", 'torch.empty(0, dtype=torch.int64, device="cuda")'),
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


def test_numbers_are_made_in_the_type_of_the_tensor_that_they_go_with() -> None:
    code = _function("torch.tensor([0.25, 2.]).to(x.device, x.dtype)")
    assert fixed(code, "XFER01", unsafe=False) == code
    assert fixed(code, "XFER01") == _function("torch.tensor([0.25, 2.], dtype=x.dtype, device=x.device)")
