"""XFER01: numbers that are computed, and fixes beside code that stays as it is."""

from __future__ import annotations

import math
from textwrap import dedent
from typing import Any

import pytest
import torch

from tests.rules.xfer.builders import returning
from tests.support import findings, fixed
from torchlint.finding import Applicability


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ('float("-inf")', -math.inf),
        ("len(values)", 3),
        ("math.sqrt(2.0)", math.sqrt(2.0)),
        ("max(3, 4)", 4),
        ("int(2.5)", 2),
    ],
)
def test_a_call_that_gives_one_number_is_no_range(number: str, expected: float) -> None:
    before = "import math\n" + returning(f"torch.tensor({number}).to(x.device)")
    after = fixed(before, "XFER01", unsafe=True)
    assert f"torch.tensor({number}, device=x.device)" in after
    namespace: dict[str, Any] = {}
    exec(after, namespace)
    made = namespace["build"](2, torch.ones(1), [1, 2, 3])
    assert torch.equal(made, torch.tensor(expected))


def test_a_gpu_that_may_be_none_is_not_named_as_a_device() -> None:
    code = """\
    import torch

    class Trainer:
        def __init__(self, args, size):
            self.gpu = args.gpu
            self.bank = torch.zeros(size, 8).cuda(self.gpu)

        def start(self, size):
            self.first = torch.zeros(size, 8).cuda(0)
    """
    found = findings(dedent(code), "XFER01")
    assert [finding.fix.applicability for finding in found if finding.fix] == [
        Applicability.DISPLAY,
        Applicability.SAFE,
    ]
    assert fixed(dedent(code), "XFER01", unsafe=True) == dedent(code).replace(
        "torch.zeros(size, 8).cuda(0)", "torch.zeros(size, 8, device=0)"
    )


@pytest.mark.parametrize("copy", [".to(x.device).to(x.dtype)", ".to(x.dtype).to(x.device)", ".to(x.device, x.dtype)"])
def test_a_tensor_like_another_is_made_by_it(copy: str) -> None:
    before = returning(f"torch.where(x > 0, x, torch.zeros(x.shape){copy})")
    after = fixed(before, "XFER01", unsafe=True)
    assert "torch.where(x > 0, x, x.new_zeros(x.shape))" in after
    made = []
    for code in (before, after):
        namespace: dict[str, Any] = {}
        exec(code, namespace)
        made.append(namespace["build"](2, torch.tensor([[1.0, -1.0]], dtype=torch.double).t(), []))
    assert torch.equal(*made)
    assert made[0].stride() == made[1].stride()


def test_what_has_other_sizes_may_be_a_model() -> None:
    after = fixed(returning("torch.zeros(n, 3).to(x.device).to(x.dtype)"), "XFER01", unsafe=True)
    assert "torch.zeros(n, 3, dtype=x.dtype, device=x.device)" in after


def test_tensors_of_data_in_one_function_are_made_alike() -> None:
    code = """\
    import torch

    def inputs(node, kinds, neighbours, device, other):
        nodes = torch.tensor([3 for _ in range(kinds)]).to(device)
        types = torch.tensor(list(range(kinds))).to(device)
        near = torch.tensor([neighbours[node] for _ in range(kinds)], dtype=torch.long).to(device)
        if kinds > 3:
            near = torch.cat([near, torch.as_tensor(node).to(device=device)])
        return nodes, types, near, torch.tensor([]).to(device)

    def later(neighbours, device):
        return torch.tensor(neighbours).to(device)
    """
    apart = code.replace("near, torch.tensor([])", "near, torch.tensor(neighbours).to(other), torch.tensor([])")
    assert fixed(dedent(apart), "XFER01", unsafe=True) == dedent(apart)
    after = fixed(dedent(code), "XFER01", unsafe=True)
    head, _, rest = after.partition("def later")
    assert "torch.tensor([3 for _ in range(kinds)], device=device)" in head
    assert "torch.tensor(list(range(kinds)), device=device)" in head
    assert "for _ in range(kinds)], dtype=torch.long, device=device)" in head
    assert "torch.as_tensor(node, device=device)" in head
    assert "torch.tensor([], device=device)" in head
    assert ".to(" not in head
    assert "torch.tensor(neighbours).to(device)" in rest  # nothing is found in that function


@pytest.mark.parametrize(
    "other", ["torch.tensor(node, **options).to(device)", "torch.Tensor(list(range(kinds))).unsqueeze(1).to(device)"]
)
def test_a_tensor_of_data_that_cannot_be_told_its_device_keeps_the_others(other: str) -> None:
    code = """\
    import torch

    def inputs(node, kinds, device, options):
        nodes = torch.tensor([3 for _ in range(kinds)]).to(device)
        return nodes, OTHER
    """
    [found] = findings(dedent(code).replace("OTHER", other), "XFER01")
    assert found.fix is not None
    assert found.fix.applicability is Applicability.DISPLAY
    assert "has another like it that would stay as it is" in found.fix.why


def test_a_range_counts_in_whole_numbers_without_a_cast() -> None:
    before = returning("torch.tensor(range(n)).long().to(x.device)")
    after = fixed(before, "XFER01", unsafe=True)
    assert "torch.arange(n, device=x.device)" in after
    made = []
    for code in (before, after):
        namespace: dict[str, Any] = {}
        exec(code, namespace)
        made += [namespace["build"](n, torch.ones(1), []) for n in (3, 0)]
    assert torch.equal(made[0], made[2])
    assert torch.equal(made[1], made[3])
    assert {tensor.dtype for tensor in made} == {torch.long}


ORDER = """\
def order(x, n):
    import torch
    x = x.cuda()
    order = torch.arange({}).view(-1, 1)
    order = order.to(x.device).long()
    start = torch.zeros(n).long()
    start = start.to(x.device)
    return order, start
"""


@pytest.mark.parametrize(("many", "is_known"), [("x.size(0)", True), ("n", False)])
def test_a_cast_behind_the_copy_goes_with_it_where_it_changes_nothing(many: str, is_known: bool) -> None:
    after = fixed(ORDER.format(many), "XFER01", unsafe=True)
    assert f"order = torch.arange({many}, device=x.device).view(-1, 1)\n" in after
    assert ("order.long()" in after) is not is_known
    assert "    start = torch.zeros(n, dtype=torch.long, device=x.device)\n    return" in after


@pytest.mark.parametrize(
    ("made", "written"),
    [
        ("torch.randint(2, 9, (n,)).long()", "torch.randint(2, 9, (n,), device=x.device)"),
        ("torch.arange(7).long()", "torch.arange(7, device=x.device)"),
        ("torch.randperm(n).type_as(x).long()", "torch.randperm(n, device=x.device)"),
        ("torch.randperm(n).type_as(x).int()", "torch.randperm(n, dtype=x.dtype, device=x.device).int()"),
        (
            "torch.randint(2, 9, (n,), dtype=torch.int).long()",
            "torch.randint(2, 9, (n,), dtype=torch.int, device=x.device).long()",
        ),
        ("torch.randint(2, 9, (n,)).int()", "torch.randint(2, 9, (n,), device=x.device).int()"),
        ("torch.arange(1.5, 3).long()", "torch.arange(1.5, 3, device=x.device).long()"),
        ("torch.as_tensor([0.5, 2.5])", "torch.as_tensor([0.5, 2.5], device=x.device)"),
        (
            "torch.randint(2, 9, (n,)).view(1, -1).to(x.device).long()",
            "torch.randint(2, 9, (n,), device=x.device).view(1, -1)",
        ),
        ("(torch.arange(7) / 2).to(x.device).long()", "(torch.arange(7, device=x.device) / 2).long()"),
        ("torch.zeros(n, dtype=torch.float32).float()", "torch.zeros(n, dtype=torch.float32, device=x.device)"),
        ("torch.zeros(n, dtype=torch.int).to(torch.int32)", "torch.zeros(n, dtype=torch.int, device=x.device)"),
        ("torch.ones(n, dtype=torch.int).to(x.device).int()", "torch.ones(n, dtype=torch.int, device=x.device)"),
        ("torch.ones(n, dtype=torch.int).float()", "torch.ones(n, dtype=torch.int, device=x.device).float()"),
        ("torch.tensor(0.0).to(x.device).float()", "torch.zeros((), dtype=torch.float, device=x.device)"),
        ("torch.tensor(0).to(x.device).long()", "torch.zeros((), dtype=torch.long, device=x.device)"),
        ("torch.tensor(range(5)).to(x.device).long()", "torch.arange(5, device=x.device)"),
        ("torch.tensor(0.3).to(x.device).half()", "torch.full((), 0.3, device=x.device).half()"),
    ],
)
def test_what_makes_integers_by_itself_needs_no_cast_and_names_stay(made: str, written: str) -> None:
    before = returning(made if "type_as" in made or "x.device" in made else f"{made}.to(x.device)")
    after = fixed(before, "XFER01", unsafe=True)
    assert f"return {written}\n" in after
    results = []
    for code in (before, after):
        namespace: dict[str, Any] = {}
        torch.manual_seed(1)
        exec(code, namespace)
        results.append(namespace["build"](3, torch.ones(1), []))
    assert torch.equal(*results)
    assert results[0].dtype is results[1].dtype


@pytest.mark.parametrize("again", [".to(device=x.device)", ".to(x.device)"])
def test_a_second_copy_to_the_same_place_goes_too(again: str) -> None:
    after = fixed(returning(f"torch.zeros(n).to(x.device){again}"), "XFER01", unsafe=True)
    assert "torch.zeros(n, device=x.device)" in after
    assert ".to(" not in after
    other = fixed(returning("torch.zeros(n).to(x.device).to(device=y)"), "XFER01", unsafe=True)
    assert ".to(device=y)" in other


def test_one_number_that_is_made_once_stays_readable() -> None:
    code = """\
    import torch

    class Agent:
        def __init__(self, device):
            self.device = torch.device(device)
            self.least = torch.tensor(0.01).float().to(self.device)

        def step(self):
            return torch.tensor(0.01).to(self.device) + torch.zeros(1).cuda()
    """
    after = fixed(dedent(code), "XFER01", unsafe=True)
    assert "self.least = torch.tensor(0.01, dtype=torch.float, device=self.device)" in after
    assert "torch.full((), 0.01, device=self.device)" in after  # which waits for no copy in each step


def test_a_number_that_is_written_out_once_stays_readable() -> None:
    once = "import torch\n\nlabel = torch.tensor([388]).long().cuda()\n"
    assert len(findings(once, "XFER01")) == 1
    assert fixed(once, "XFER01", unsafe=True) == once
    always = "import torch\n\nfor step in range(3):\n    label = torch.tensor([388]).cuda()\n"
    assert "torch.full((1,), 388" in fixed(always, "XFER01", unsafe=True)


@pytest.mark.parametrize(("entry", "count"), [("torch.jit.trace", 0), ("self.run", 1)])
def test_what_is_traced_for_its_graph_is_run_once(entry: str, count: int) -> None:
    code = f"""\
    import torch

    class Loader:
        def device_of(self, device):
            holder = {entry}(lambda: torch.ones([]).to(torch.device(device)), example_inputs=[])
            nodes = [n for n in holder.graph.findAllNodes("prim::Constant") if "Device" in repr(n)]
            return nodes[-1], torch.cuda.is_available()
    """
    assert len(findings(dedent(code), "XFER01")) == count


@pytest.mark.parametrize(
    ("guard", "fixes"), [('not hasattr(self, "noise")', 0), ("self.noise is None", 0), ("x.any()", 1)]
)
def test_what_is_drawn_once_for_all_is_drawn_where_it_was(guard: str, fixes: int) -> None:
    code = f"""\
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        if {guard}:
            self.noise = torch.randn(x.shape[1]).to(x.device)
        return x + self.noise
"""
    assert len(findings(code, "XFER01")) == 1
    assert fixed(code, "XFER01", unsafe=True).count("device=x.device") == fixes


def test_two_tensors_that_would_name_the_device_on_a_line_stay_where_it_gets_too_wide() -> None:
    wide = "        [torch.ones(size, dtype=torch.long), torch.zeros(2 * size, dtype=torch.long)],\n"
    code = f"import torch\n\ndef f(size, image):\n    return torch.cat(\n{wide}        dim=0,\n    ).to(image.device)\n"
    narrow = code.replace(", dtype=torch.long", "")
    assert fixed(code, "XFER01") == code
    assert fixed(narrow, "XFER01").count("device=image.device") == 2


@pytest.mark.parametrize(
    "made",
    [
        "torch.tensor(rows, requires_grad=True).to(device)",  # what comes of the copy is no leaf
        "torch.tensor(rows, pin_memory=True).to(device)",  # which there is on the host alone
        "torch.as_tensor(rows).to(device, copy=True)",  # which shares no memory with the rows
        'torch.as_tensor(rows, None, "cpu").to(device)',  # the device would be given twice
    ],
)
def test_a_tensor_of_data_that_would_be_another_on_the_device_keeps_the_others(made: str) -> None:
    code = f"import torch\n\ndef build(rows, device):\n    zero = torch.zeros(3).to(device)\n    return zero, {made}\n"
    [found] = findings(code, "XFER01")
    assert found.fix is not None
    assert found.fix.applicability is Applicability.DISPLAY


@pytest.mark.parametrize(
    ("made", "dtype", "rows"),
    [
        ("torch.tensor(rows)", "torch.float64", [0.1]),
        ("torch.tensor(rows)", "torch.uint8", [1.5, 300.5]),
        ("torch.tensor(rows)", "torch.long", [math.nan]),
        ("torch.tensor(rows)", "torch.float32", [0.1, 3]),
        ("torch.tensor(rows, dtype=torch.float16)", "torch.float32", [0.1]),
    ],
)
def test_data_is_cast_after_the_copy_where_its_numbers_could_be_others(
    made: str, dtype: str, rows: list[float]
) -> None:
    code = "import torch\n\ndef build(rows, device):\n    zero = torch.zeros(3).to(device)\n"
    code += f"    return {made}.to(device, {dtype})\n"
    after = fixed(code, "XFER01")
    assert "zero = torch.zeros(3, device=device)" in after
    assert f".to(device, {dtype})" not in after
    results = []
    for text in (code, after):
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        results.append(namespace["build"](rows, "cpu"))
    assert results[0].dtype == results[1].dtype
    assert torch.equal(*results)


def test_a_range_of_another_class_keeps_the_cast() -> None:
    for made in ("torch.FloatTensor", "torch.DoubleTensor"):
        before = returning(f"{made}(range(n)).long().to(x.device)")
        after = fixed(before, "XFER01", unsafe=True)
        assert "torch.arange" in after
        namespace: dict[str, Any] = {}
        exec(after, namespace)
        assert namespace["build"](3, torch.ones(1), []).dtype is torch.int64


@pytest.mark.parametrize("rest", ["torch.int32", 'None, "cpu"'])
def test_a_type_that_is_given_without_its_name_is_given_once(rest: str) -> None:
    for numbers in ("[1, 0]", "1"):
        [found] = findings(returning(f"torch.as_tensor({numbers}, {rest}).to(x.device)"), "XFER01")
        assert found.fix is None


@pytest.mark.parametrize(("number", "after"), [("-100", ", dtype=x.dtype, device=x.device)"), ("0.5", ").to(")])
def test_a_tensor_that_is_filled_with_an_integer_is_made_in_the_type_of_another(number: str, after: str) -> None:
    code = returning(f"torch.cat([torch.full((n, 3), {number}).to(x.device, x.dtype), torch.where(x > 0, x, -x)])")
    assert f"torch.full((n, 3), {number}{after}" in fixed(code, "XFER01", unsafe=True)
    assert fixed(code, "XFER01", unsafe=False) == code


def test_a_copy_that_goes_on_to_another_device_stays() -> None:
    code = "import torch\n\ndef ones(x, y):\n    x = x.cuda()\n    return torch.ones(3).type_as(x).to(y.device)\n"
    assert findings(code, "XFER01")
    assert fixed(code, "XFER01", unsafe=True) == code


def test_lines_that_would_become_too_long_a_one_stay() -> None:
    value = "torch.ones((x.shape[0], x.shape[1])).to(\n        device) * 2"
    code = f"import torch\n\ndef steps(x, device):\n    some_steps, others = {value}, {value}\n"
    code += "    return some_steps, others\n"
    assert fixed(code, "XFER01", unsafe=True) == code
    assert len(max(code.splitlines(), key=len)) < 100
    shorter = code.replace("some_steps, others = ", "a, b = ").replace("(x.shape[0], x.shape[1])", "2")
    assert "torch.ones(2, device=device) * 2, torch.ones" in fixed(shorter, "XFER01", unsafe=True)


@pytest.mark.parametrize(("width", "is_fixed"), [(5, True), (60, False)])
def test_a_line_that_is_far_too_long_does_not_grow(width: int, is_fixed: bool) -> None:
    made = "torch.FloatTensor([0.3]).cuda()"
    line = f"    return {'x' * width} + {'y' * width} + {made}\n"
    code = f"import torch\n\ndef shift({'x' * width}, {'y' * width}):\n{line}"
    assert ("device=" in fixed(code, "XFER01", unsafe=True)) is is_fixed


AGENT = """
import torch


class Agent:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device

    def act(self, state):
        return self.net(torch.tensor([state], dtype=torch.float).to(self.device)).argmax()

    def update(self, rewards):
        for reward in rewards:
            scale = torch.zeros(3).to(self.device)
            self.net(torch.tensor([reward]).to(self.device) * scale).sum().backward()


def shown(state):
    return torch.tensor([state]).to(agent.device)


agent = Agent(torch.nn.Linear(3, 3), torch.device("cuda"))
"""


def test_data_that_another_method_of_the_class_copies_is_told_the_same_way() -> None:
    after = fixed(AGENT, "XFER01")
    assert "self.net(torch.tensor([state], dtype=torch.float, device=self.device))" in after
    assert "self.net(torch.tensor([reward], device=self.device) * scale)" in after
    assert "torch.tensor([state]).to(agent.device)" in after


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (
            "torch.LongTensor(list(map(len, rows))).unsqueeze(0)",
            "torch.tensor(list(map(len, rows)), dtype=torch.long, device=device).unsqueeze(0)",
        ),
        (
            "torch.FloatTensor([sum(row) for row in rows])",
            "torch.tensor([sum(row) for row in rows], dtype=torch.float32, device=device)",
        ),
        ("torch.LongTensor(rows)", "torch.LongTensor(rows).to(device)"),
        ("torch.ByteTensor([sum(row) for row in rows])", "torch.ByteTensor([sum(row) for row in rows]).to(device)"),
    ],
    ids=["a list that gets another shape", "a comprehension", "of what may be a size", "of numbers that may wrap"],
)
def test_a_class_of_tensors_that_is_given_a_list_is_told_where_to_make_it_beside_another(made: str, after: str) -> None:
    code = "import torch\n\ndef inputs(rows, device):\n    count = torch.LongTensor([len(rows)]).to(device)\n"
    code += f"    made = {made}.to(device)\n    return count, made\n"
    changed = fixed(code, "XFER01", unsafe=True)
    assert f"    made = {after}\n" in changed
    results = []
    for each in (code, changed):
        namespace: dict[str, Any] = {}
        exec(each, namespace)
        results.append(namespace["inputs"]([[1, 2], [3, 4]], torch.device("cpu")))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
        assert one.dtype is other.dtype


@pytest.mark.parametrize(
    ("beside", "made"),
    [("torch.tensor(1.0, device=x.device)", "torch.tensor(0.0"), ("torch.tensor(1.0)", "torch.zeros(()")],
)
def test_a_number_is_made_as_the_file_makes_others(beside: str, made: str) -> None:
    code = f"import torch\n\ndef f(x):\n    return torch.tensor(0.0).to(x.device)\n\ndef g(x):\n    return {beside}\n"
    assert f"return {made}, device=x.device)" in fixed(code, "XFER01", unsafe=True)


@pytest.mark.parametrize(
    ("made", "is_fixed"),
    [
        ("torch.zeros(n)", True),
        ("torch.tensor(0).float()", False),  # `torch.zeros(())` in one branch alone
        ("torch.FloatTensor(n, 2)", False),
    ],
)
def test_another_function_makes_it_in_both_branches_or_in_none(made: str, is_fixed: bool) -> None:
    code = f"import torch\n\ndef f(parts, n):\n    if n > 3:\n        parts.append({made}.cuda())\n"
    code += f"    else:\n        parts.append({made})\n"
    assert ("device=" in fixed(code, "XFER01", unsafe=True)) is is_fixed


def test_torchscript_has_no_new_tensor() -> None:
    code = "import torch\n\n@DECORATOR\ndef f(x):\n    return x * torch.tensor([1, 2]).to(x) + x.cuda()\n"
    assert "x.new_tensor([1, 2])" in fixed(code.replace("DECORATOR", "torch.no_grad()"), "XFER01", unsafe=True)
    scripted = fixed(code.replace("DECORATOR", "torch.jit.script_if_tracing"), "XFER01", unsafe=True)
    assert "torch.tensor([1, 2], dtype=x.dtype, device=x.device)" in scripted
