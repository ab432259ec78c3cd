"""XFER01: tensors that are made on the host and copied."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
import torch

from tests.rules.xfer.builders import returning
from tests.support import findings, fixed


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


@pytest.mark.parametrize(
    ("made", "instead"),
    [
        ("torch.tensor(0.).cuda()", 'torch.zeros((), device="cuda")'),
        ("torch.tensor(0).float().cuda()", 'torch.zeros((), dtype=torch.float, device="cuda")'),
        ("torch.tensor(0).cuda()", 'torch.zeros((), dtype=torch.long, device="cuda")'),
        ("torch.tensor(1e40).cuda()", 'torch.tensor(1e40, device="cuda")'),
        ("torch.tensor(1e5, dtype=torch.half).cuda()", 'torch.tensor(1e5, dtype=torch.half, device="cuda")'),
        ("torch.tensor(-1e9).cuda()", 'torch.full((), -1e9, device="cuda")'),
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
        ("torch.tensor([1.]).double().cuda()", 'torch.ones(1, dtype=torch.double, device="cuda")'),
        ("torch.tensor([0]).cuda()", 'torch.zeros(1, dtype=torch.long, device="cuda")'),
        ("torch.tensor([[7]]).cuda()", 'torch.full((1, 1), 7, device="cuda")'),
        ("torch.tensor([[0.]]).cuda()", 'torch.zeros(1, 1, device="cuda")'),
        ("(torch.ones(1, n)).double().cuda()", 'torch.ones(1, n, dtype=torch.double, device="cuda")'),
        ("torch.FloatTensor([1]).cuda()", 'torch.ones(1, dtype=torch.float32, device="cuda")'),
        ("torch.FloatTensor([1, 2]).cuda()", 'torch.tensor([1, 2], dtype=torch.float32, device="cuda")'),
        ("torch.LongTensor(range(0, 5)).cuda()", 'torch.arange(0, 5, dtype=torch.long, device="cuda")'),
        ("torch.tensor(range(5)).cuda()", 'torch.arange(5, device="cuda")'),
        ("torch.tensor(range(7, 1, -2)).cuda()", 'torch.arange(7, 1, -2, device="cuda")'),
        ("torch.Tensor([0.5, 1]).cuda()", 'torch.tensor([0.5, 1], device="cuda")'),
        ("torch.tensor([7] * n).cuda()", 'torch.tensor([7] * n, device="cuda")'),
        ("torch.zeros(n).type_as(x)", "x.new_zeros(n)"),
        ("torch.ones((2, n)).type_as(x)", "x.new_ones((2, n))"),
        ("torch.zeros(\n        x.size()).type_as(x)", "x.new_zeros(x.size())"),
        (
            "torch.zeros(\n        (n,\n         2)\n    ).type_as(x)",
            "x.new_zeros(\n        (n,\n         2)\n    )",
        ),
        ("torch.Tensor(n, 2).type_as(x).zero_()", "x.new_zeros(n, 2)"),
        (
            "torch.zeros(n, requires_grad=False).type_as(x)",
            "torch.zeros(n, requires_grad=False, dtype=x.dtype, device=x.device)",
        ),
        ("torch.arange(5).type_as(x)", "torch.arange(5, device=x.device).to(x.dtype)"),
        ("torch.zeros(n).type_as(x).to(x.device)", "x.new_zeros(n)"),
        ("torch.ones(n).type_as(x).long()", "torch.ones(n, dtype=torch.long, device=x.device)"),
        ("torch.ones(n).type_as(x).sum()", "x.new_ones(n).sum()"),
        ("torch.arange(5).type_as(x).to(x.device)", "torch.arange(5, device=x.device).to(x.dtype)"),
    ],
)
def test_fixes_of_numbers_make_the_same_tensor(made: str, instead: str) -> None:
    """Compared on the host, which stands in for the GPU."""
    after = fixed(returning(made), "XFER01", unsafe=False)
    assert after == returning(instead)
    tensors = []
    for code in (made.replace(".cuda()", ""), instead.replace('"cuda"', '"cpu"')):
        scope: dict[str, object] = {"torch": torch, "n": 3, "x": torch.ones(2, dtype=torch.float16)}
        exec(returning(code), scope)
        tensors.append(scope["build"](3, scope["x"], None))  # type: ignore[operator]
    before, now = tensors
    if "zeros(n)" in made:
        before, now = before + 1, now + 1
    assert before.dtype == now.dtype
    assert torch.equal(before, now)


def test_a_range_is_counted_before_it_gets_a_type_that_may_be_complex() -> None:
    instead = returning("torch.arange(n, device=device).to(x.dtype)")
    assert fixed(returning("torch.arange(n).to(device, x.dtype)"), "XFER01") == instead
    for dtype in (torch.complex64, torch.float16):
        scope: dict[str, object] = {}
        exec(instead, scope)
        counted = scope["build"](3, torch.ones(2, dtype=dtype), None, "cpu")  # type: ignore[operator]
        assert torch.equal(counted, torch.arange(3).to(dtype))


@pytest.mark.parametrize(
    ("use", "is_fixed"), [("filtered(y.cpu(), 3)", False), ("y.cpu() + y.mean()", True), ("y.float()", True)]
)
def test_a_copy_that_the_host_reads_back_at_once_is_not_made_on_the_device(use: str, is_fixed: bool) -> None:
    code = f"import torch\n\ndef build(n, device):\n    y = torch.zeros(n).to(device)\n    y = {use}\n    return y\n"
    assert len(findings(code, "XFER01")) == 1
    assert ("device=device" in fixed(code, "XFER01")) is is_fixed


@pytest.mark.parametrize(
    ("given", "count"), [("[torch.rand(2, 3) for _ in range(1)]", 0), ("[2, 3]", 1), ("x.shape[1:]", 1)]
)
def test_arguments_that_are_unpacked_may_be_tensors(given: str, count: int) -> None:
    code = f"import torch\n\ndef build(x):\n    sizes = {given}\n    return torch.Tensor(*sizes).cuda()\n"
    assert len(findings(code, "XFER01")) == count


def test_a_range_that_may_be_empty() -> None:
    """Of no numbers, the type is another; and `torch.arange` refuses what runs backwards."""
    code = returning("torch.tensor(range(n)).cuda()")
    assert fixed(code, "XFER01", unsafe=False) == code
    assert fixed(code, "XFER01") == returning('torch.arange(n, device="cuda")')
    for numbers in ("range(1, n)", "range(5, 1)", "range(*x)"):
        code = returning(f"torch.tensor({numbers}).cuda()")
        assert findings(code, "XFER01")
        assert fixed(code, "XFER01") == code


@pytest.mark.parametrize(
    "made",
    ["torch.Tensor([1, 2]).cuda()", "torch.LongTensor([1.5, 2]).cuda()", "torch.ByteTensor([1, 300]).cuda()"],
)
def test_classes_that_convert_in_their_own_way_are_left_as_they_are(made: str) -> None:
    assert len(findings(returning(made), "XFER01")) == 1
    assert fixed(returning(made), "XFER01") == returning(made)


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
    assert findings(returning(data), "XFER01") == []


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
    code = returning("torch.normal(n, x, size=(3, 4)).cuda()")
    assert len(findings(code, "XFER01")) == 1
    assert findings(returning("torch.normal(n, x).cuda()"), "XFER01") == []


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


def test_a_part_of_what_is_joined_is_a_tensor() -> None:
    code = returning("torch.cat([x, torch.zeros(n, 2).to(x)])")
    after = fixed(code, "XFER01", unsafe=False)
    assert "torch.cat([x, x.new_zeros(n, 2)])" in after
    assert findings(code.replace("torch.cat", "list"), "XFER01") == []


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
    assert fixed(code, "XFER01").strip() == code.strip()  # beside a like line that stays as it is
    code = code.replace("(torch.ones(4) * steps[index - 1])", "torch.ones(4).mul(steps[index - 1])")
    after = fixed(code, "XFER01")
    assert "torch.ones(4, device=device) * step" in after
    assert "steps[index - 1]).long().to(device)" in after
    totals = []
    for text in (code, after):
        scope: dict[str, Any] = {}
        exec(text, scope)
        totals.append(scope["sample"](lambda x, t, last: 3 * x + t - last, torch.zeros(4).long(), 99, "cpu", None))
    assert torch.equal(*totals)


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


def test_numbers_are_made_in_the_type_of_the_tensor_that_they_go_with() -> None:
    code = returning("torch.tensor([0.25, 2.]).to(x.device, x.dtype)")
    assert fixed(code, "XFER01", unsafe=False) == code
    assert fixed(code, "XFER01") == returning("torch.tensor([0.25, 2.], dtype=x.dtype, device=x.device)")


@pytest.mark.parametrize(
    ("name", "computed", "count"),
    [
        ("pitch", "pitch * ramp", 1),
        ("pitch", "ramp / pitch", 1),
        ("pitch", "[pitch, ramp]", 0),
        ("pitch", "pitch * n", 0),
        ("idx", "ramp / idx", 0),
    ],
)
def test_what_is_computed_with_a_tensor_is_no_device(name: str, computed: str, count: int) -> None:
    code = f"import torch\n\ndef build(n, {name}, net):\n    net.cuda()\n    ramp = torch.arange(n).to({name})\n"
    assert len(findings(f"{code}    return {computed}\n", "XFER01")) == count


MODULE_FILE = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            return self.mix(x, torch.zeros(len(x), 5).to(x.device))

        def mix(self, x, h):
            return h + torch.ones(len(x), 5).to(h.device)

    def jacobian(y, n):
        return torch.zeros(n, n).to(y.device)

    def main():
        print(jacobian(Net()(torch.randn(2, 3)), 3))

    if {condition}:
        print(Net()(torch.randn(2, 3)).shape, jacobian(torch.ones(2), 2))
        {work}
    """


@pytest.mark.parametrize(
    ("condition", "work", "lines"),
    [
        ('__name__ == "__main__"', "main()", [6, 9, 12]),
        ('__name__ == "__main__"', "print(jacobian(torch.ones(2).cpu(), 2))", [6, 9, 12]),
        ('__name__ == "__main__"', "Net()(torch.randn(2, 3)).sum().backward()", []),
        ('__name__ == "__main__"', 'torch.save(Net(), open("net.pt", "wb"))', []),
        ("torch.backends.mps.is_built()", "main()", []),
    ],
)
def test_the_end_of_a_file_that_only_tries_it_out(condition: str, work: str, lines: list[int]) -> None:
    found = findings(MODULE_FILE.format(condition=condition, work=work), "XFER01")
    assert [finding.line for finding in found] == lines


@pytest.mark.parametrize(
    ("entries", "count"),
    [
        ("[SOS_token for _ in range(n)]", 1),
        ("[[vocabulary.PAD for _ in range(n)] for _ in range(2)]", 1),
        ("[BOS] * n", 1),
        ("[[0] for _ in range(n)]", 1),
        ("[row for row in vocabulary]", 0),
        ("[SOS_token for _ in vocabulary]", 0),
        ("[vocabulary[word] for word in range(n)]", 0),
        ("[sos for sos in range(n)]", 0),
        ("[words] * n", 0),
    ],
)
def test_symbols_that_a_sequence_begins_with_are_numbers(entries: str, count: int) -> None:
    head = "import torch\nfrom vocabulary import BOS, vocabulary, words\n\nSOS_token = vocabulary.index['<s>']\n\n"
    code = f'{head}def first(n, model):\n    return model(torch.tensor({entries}).to("cuda"))\n'
    assert len(findings(code, "XFER01")) == count


LONG = "return torch.cat((torch.ones(n, 1), torch.zeros(n, len(x))), dim=-1){}.to(x.device)"


@pytest.mark.parametrize(
    ("line", "is_fixed"),
    [
        (LONG.format(""), True),
        (LONG.format(".mul(2).add(1).sub(3).div(4).floor().abs().sqrt().square()"), False),
        ("return torch.stack([torch.arange(i, i + 2) for i in range(n)]).to(x.device)", False),
    ],
    ids=["a short line", "a long line", "many small ones"],
)
def test_a_line_that_gains_nothing_stays(line: str, is_fixed: bool) -> None:
    code = f"import torch\n\n\ndef labels(x: torch.Tensor, n: int):\n    {line}\n"
    assert findings(code, "XFER01")
    assert ("device=x.device" in fixed(code, "XFER01")) is is_fixed


@pytest.mark.parametrize(("use", "is_fixed"), [("print(str(x.to(device)))", False), ("print(net(x.to(device)))", True)])
def test_what_is_only_shown_needs_no_tensor_on_the_device(use: str, is_fixed: bool) -> None:
    code = f"import torch\n\n\ndef show(device: torch.device, net):\n    x = torch.zeros(3)\n    {use}\n"
    assert ("device=device" in fixed(code, "XFER01")) is is_fixed


def test_a_range_in_the_type_of_a_tensor_stays_where_the_line_would_get_too_long() -> None:
    assert "device=x.device" in fixed(returning("torch.arange(5).type_as(x).sqrt()"), "XFER01")
    long = returning("torch.arange(5).type_as(x)" + ".sqrt()" * 8)
    assert fixed(long, "XFER01") == long
