"""XFER01: casts, classes of tensors and the constructors before torch 0.4."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.xfer.builders import returning
from tests.support import findings, fixed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "x = torch.arange(n).repeat(2).type(torch.LongTensor)\n    x = x.to(device)\n",
            "x = torch.arange(n, device=device).repeat(2).type(torch.long)\n",
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


def test_the_type_of_a_tensor_says_where_it_is() -> None:
    code = "import torch\n\ndef build(n, x):\n    x = x.cuda()\n    return torch.zeros(n).type(x.type())\n"
    assert "return x.new_zeros(n)" in fixed(code, "XFER01", unsafe=False)
    assert findings(code.replace("x.cuda()", "x.cpu()"), "XFER01") == []


@pytest.mark.parametrize("choice", ["FloatTensor", "torch.cuda.FloatTensor if n else torch.FloatTensor"])
def test_a_class_of_tensors_that_may_be_of_the_gpu(choice: str) -> None:
    code = returning(f"torch.zeros(n).type({choice})").replace(
        "    return", "    FloatTensor = torch.cuda.FloatTensor if n else torch.FloatTensor\n    return"
    )
    assert len(findings(code, "XFER01")) == 1
    assert fixed(code, "XFER01") == code
    assert findings(code.replace("torch.cuda.FloatTensor", "torch.HalfTensor"), "XFER01") == []


@pytest.mark.parametrize(
    "expression",
    [
        "torch.FloatTensor(torch.zeros(n)).to(device)",
        "torch.Tensor(torch.ones(n).view(1, -1)).to(device)",
        "torch.LongTensor(torch.arange(n) * 2).to(device)",
    ],
)
def test_a_legacy_constructor_is_given_no_tensor_of_a_device(expression: str) -> None:
    code = returning(expression)
    assert fixed(code, "XFER01") == code
    names: dict[str, Any] = {}
    exec(fixed(code, "XFER01"), names)
    assert names["build"](3, None, None, "meta").shape[-1] == 3
    with pytest.raises(TypeError):
        torch.FloatTensor(torch.zeros(3, device="meta"))


def test_a_legacy_constructor_is_given_no_variable_of_a_device() -> None:
    code = returning("torch.FloatTensor(made).to(device)")
    code = code.replace("    return", "    made = torch.zeros(n)\n    return")
    assert fixed(code, "XFER01") == code


def test_constants_wrapped_for_no_gradient_are_made_on_the_device() -> None:
    code = returning("Variable(torch.zeros(n), requires_grad=False).cuda()").replace(
        "import torch\n", "import torch\nfrom torch.autograd import Variable\n", 1
    )
    after = fixed(code, "XFER01", unsafe=False)
    assert 'return Variable(torch.zeros(n, device="cuda"), requires_grad=False)' in after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.zeros(2,|            x.size(1)).type(x.type())", "x.new_zeros(2,|            x.size(1))"),
        (
            "torch.FloatTensor(2,|                  x.size(1)).cuda()",
            'torch.empty(2,|            x.size(1),|            dtype=torch.float32, device="cuda")',
        ),
        (
            "torch.FloatTensor([2, x.size(1)],|                  ).cuda()",
            'torch.tensor([2, x.size(1)], dtype=torch.float32, device="cuda",|             )',
        ),
        (
            "torch.FloatTensor(|  2, x.size(1)).cuda()",
            'torch.empty(|  2, x.size(1), dtype=torch.float32, device="cuda")',
        ),
        ("torch.zeros(2, 2,|            x.size(1)).cuda()", 'torch.zeros(2, 2,|            x.size(1), device="cuda")'),
    ],
    ids=[
        "a name as long",
        "a shorter one",
        "only the bracket",
        "not under the first argument",
        "lines filled as far as they go",
    ],
)
def test_lines_stay_under_the_first_argument(before: str, after: str) -> None:
    code = "import torch\n\ndef pad(x):\n    x = x.cuda()\n    pad = {}\n    return pad\n"
    before, after = (text.replace("|", "\n" + " " * len("    pad = ")) for text in (before, after))
    assert fixed(code.format(before), "XFER01") == code.format(after)


@pytest.mark.parametrize(("other", "is_fixed"), [("torch.FloatTensor", False), ("torch.rand", True)])
def test_a_class_of_tensors_that_the_other_branch_keeps_stays(other: str, is_fixed: bool) -> None:
    code = "import torch\n\ndef make(n, fast, net):\n    if fast:\n        x = torch.FloatTensor(n, 3).cuda()\n"
    code += f"    else:\n        x = {other}(n, 3)\n    return net(x)\n"
    assert len(findings(code, "XFER01")) == 1
    assert ("torch.empty(" in fixed(code, "XFER01")) is is_fixed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.eye(3).type(torch.FloatTensor)", "torch.eye(3, dtype=torch.float32, device=device)"),
        ("torch.zeros(3).type(torch.LongTensor)", "torch.zeros(3, dtype=torch.long, device=device)"),
        (
            "torch.Tensor([2, 0.5]).type(torch.FloatTensor)",
            "torch.tensor([2, 0.5], dtype=torch.float32, device=device)",
        ),
        ("torch.Tensor([1, 2]).type(torch.FloatTensor)", "torch.tensor([1, 2], dtype=torch.float32, device=device)"),
        ("torch.ones(n).to(kept.dtype)", "torch.ones(n, dtype=kept.dtype, device=device)"),
        ("torch.scalar_tensor(0)", "torch.scalar_tensor(0, device=device)"),
    ],
)
def test_a_tensor_is_made_in_the_type_that_it_is_cast_to(before: str, after: str) -> None:
    head = "import torch\n\ndef build(net, device, kept, n=2):\n    net.cuda()\n    "
    code = f"{head}return net({before}.to(device))\n"
    assert fixed(code, "XFER01") == f"{head}return net({after})\n"
    names = {"torch": torch, "n": 2, "device": "cpu", "kept": torch.ones(1).double()}
    outputs = [eval(value, names) for value in (f"{before}.to(device)", after)]
    assert torch.equal(*outputs)
    assert outputs[0].dtype == outputs[1].dtype


@pytest.mark.parametrize("kind", ["dtype", "self.dtype"])
def test_what_may_be_a_class_of_tensors_stays_before_the_copy(kind: str) -> None:
    """`.type(torch.FloatTensor)` behind the copy would bring the tensor back to the host."""
    code = "import torch\n\ndef build(self, device, dtype):\n"
    code += f"    return torch.zeros(3).type({kind}).to(device)\n"
    assert fixed(code, "XFER01") == code


def test_a_copy_under_another_name_stays() -> None:
    head = "import torch\n\ndef build(device):\n    x = torch.zeros(2, 3)\n"
    assert "device=device" not in fixed(f"{head}    y = x.to(device)\n    return y\n", "XFER01")
    assert "device=device" in fixed(f"{head}    x = x.to(device)\n    return x\n", "XFER01")


@pytest.mark.parametrize("number", ["math.pi", "np.pi", "2 * np.pi", "torch.pi"])
def test_constants_of_libraries_are_numbers(number: str) -> None:
    head = "import math\nimport numpy as np\nimport torch\n\ndef build(n, device):\n    x = torch.zeros(n) - 0.5\n"
    code = f"    y = {number} * torch.zeros(n)\n    return x.to(device), y.to(device)\n"
    after = f"    y = {number} * torch.zeros(n, device=device)\n    return x, y\n"
    assert fixed(head + code, "XFER01") == head.replace("zeros(n)", "zeros(n, device=device)") + after


@pytest.mark.parametrize(
    ("other", "after"),
    [
        ("torch.sort(lengths)[1]", "torch.arange(len(lengths), dtype=at.dtype, device=at.device)"),
        ("torch.sort(lengths)[0]", "torch.arange(len(lengths), device=at.device).to(at.dtype)"),
    ],
)
def test_whole_numbers_get_the_type_of_indices_at_once(other: str, after: str) -> None:
    code = (
        "import torch\n\n\ndef inverse(lengths):\n    lengths = lengths.cuda()\n"
        f"    at = {other}\n    at[at] = torch.arange(len(lengths)).type_as(at)\n    return at\n"
    )
    assert f"at[at] = {after}\n" in fixed(code, "XFER01")


@pytest.mark.parametrize(("move", "is_made_there"), [("to(x.device)", True), ("type_as(x)", False)])
def test_a_line_that_would_say_twice_where_it_goes_stays_if_it_grew_too_long(move: str, is_made_there: bool) -> None:
    made = f"torch.eye(n).{move}[y].unsqueeze(1) - torch.eye(n).{move}"
    code = f'import torch\n\n\ndef specification(x, y, n, device="cuda"):\n    return {made}\n'
    assert len(findings(code, "XFER01")) == 2
    after = fixed(code, "XFER01", unsafe=True)
    assert after.count("device=x.device") == 2 * is_made_there
    assert after.count("\n") == code.count("\n")
