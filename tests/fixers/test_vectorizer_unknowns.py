"""The loop vectoriser where ranks, dtypes or the number of rows are not known, and where nothing but a mapped function
computes what one iteration does."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent, indent
from typing import Any

import pytest
import torch

from tests.fixers import loop_parts as parts
from tests.fixers import loops as kinds
from tests.fixers.generated import CASES, RULES, disagreement
from tests.support import findings, fixed

FLOATS = CASES[parts.FLOATS]

# Of tensors whose ranks and dtypes are not in sight; a, b and c have these shapes or others.
UNKNOWN = {
    "a sum of what may be scalars": (
        "out = 0\nfor i in range(len(a)):\n    out = out + (a[i] - b)\n",
        ({"a": ("n",), "b": ()}, {"a": ("n", "p"), "b": ()}, {"a": ("n",), "b": ("p",)}),
        "if len(a) > 0:",
    ),
    "a sum of a generator of what may be scalars": (
        "out = torch.as_tensor(sum(a[i] * b for i in range(len(a))))\n",
        ({"a": ("n",), "b": ()}, {"a": ("n", "p"), "b": ()}, {"a": ("n",), "b": ("p",)}),
        "if len(a) > 0 else 0",
    ),
    "a sum over pairs of what may be scalars": (
        "out = 0\nfor i in range(len(a)):\n    for j in range(len(b)):\n        out += a[i] - b[j]\n",
        ({"a": ("n",), "b": ("m",)}, {"a": ("n", "p"), "b": ("m",)}, {"a": ("n",), "b": ("m", "p")}),
        "if len(a) > 0 and len(b) > 0:",
    ),
    "a sum over pairs within one tensor": (
        "out = 0\nfor i in range(len(a)):\n    for j in range(len(a)):\n        out += a[i] - a[j] * b\n",
        ({"a": ("n",), "b": ()}, {"a": ("n", "p"), "b": ()}),
        "if len(a) > 0:",
    ),
    "a choice of what may be scalars": (
        "out = torch.stack([torch.where(a[i] > 0, b[i], c) for i in range(len(a))])\n",
        (
            {"a": ("n",), "b": ("n",), "c": ()},
            {"a": ("n", "p"), "b": ("n",), "c": ("p",)},
            {"a": ("n",), "b": ("n", "p"), "c": ()},
        ),
        ".to(torch.result_type(b_i, c))",
    ),
    "a running sum along solutions that may be vectors or matrices": (
        "p, m = b.shape\nrows = []\nfor row in a:\n    t = torch.linalg.solve(b @ b.t() + torch.eye(p), row)\n"
        "    rows.append(t.cumsum(0))\nout = torch.stack(rows)\n",
        ({"a": ("n", "p"), "b": ("p", "m")}, {"a": ("n", "p", "q"), "b": ("p", "m")}),
        "torch.vmap(lambda t: t.cumsum(0))(t)",
    ),
    "a number read from what may have dimensions of size 1": (
        "out = torch.zeros(len(a))\nfor i in range(len(a)):\n    out[i] = (a[i] @ b).item()\n",
        ({"a": ("n", "p"), "b": ("p",)}, {"a": ("n", "one", "p"), "b": ("p",)}),
        ".flatten(0)",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_of_the_operands_is_provided_for(name: str) -> None:
    body, shapes, expected = UNKNOWN[name]
    for dims in shapes:
        parameters = ", ".join(f"{tensor}: torch.Tensor" for tensor in dims)
        code = f"import torch\n\n\ndef f({parameters}):\n{indent(body, '    ')}    return out\n"
        loop = kinds.Generated(code, dims)
        new = fixed(code, *RULES)
        assert expected in new
        cases = [replace(case, sizes={**case.sizes, "one": 1}) for case in FLOATS]
        assert disagreement(loop, new, cases) is None


@pytest.mark.parametrize(
    "body",
    [
        "out = 0\nfor i in range(len(a)):\n    if a[i].sum() > b:\n        out += 1\n",
        "out = torch.zeros(len(a))\nfor i in range(len(a)):\n    if a[i].sum() > b:\n        out[i] = a[i].max()\n",
    ],
)
def test_what_may_be_a_number_is_given_no_dimensions(body: str) -> None:
    code = "import torch\n\n\ndef f(a: torch.Tensor, b):\n" + indent(body + "return out\n", "    ")
    rows = torch.tensor([[1.0, 2.0], [-3.0, 1.0], [4.0, 0.0]])
    results = []
    for text in (code, fixed(code, *RULES, unsafe=True)):
        space: dict[str, Any] = {}
        exec(text, space)
        results.append(space["f"](rows, 0.5))
    assert torch.equal(*map(torch.as_tensor, results))


def test_an_operator_between_rows_is_not_mapped_where_their_ranks_are_out_of_sight() -> None:
    code = """\
    import torch


    def f(a: torch.Tensor, b: torch.Tensor, n):
        rows = []
        for i in range(n):
            rows.append(a[i] * 2 + b[i])
        return torch.stack(rows)
    """
    (finding,) = findings(dedent(code), *RULES)
    assert "rank" in finding.no_fix
    assert fixed(code, *RULES) == dedent(code)


def test_statements_beside_an_inner_loop_are_not_put_under_a_condition_on_both() -> None:
    code = """\
    import torch


    def f(a: torch.Tensor, b: torch.Tensor, s: torch.Tensor):
        out = torch.zeros(len(a))
        total = 0
        for i in range(len(a)):
            out[i] = s[i]
            for j in range(len(b)):
                total += a[i] - b[j]
        return out, total
    """
    assert fixed(code, *RULES) == dedent(code)


def test_the_number_of_rows_of_a_table_is_an_integer_where_a_loop_runs_over_it() -> None:
    code = "import torch\n\n\ndef f(x, n):\n    x.unsqueeze(0)\n    out = torch.zeros(n)\n    for i in range(n):\n"
    assert "    out[:] = x[" in fixed(code + "        out[i] = x[i].exp().sum()\n    return out\n", *RULES)


def test_rows_that_are_collected_as_they_are_become_one_copy() -> None:
    code = """\
    import torch


    def f(x: torch.Tensor, y: torch.Tensor):
        rows = []
        for i in range(len(y)):
            rows.append(x[i])
        return torch.stack(rows)
    """
    assert "    return x[: len(y)].clone()\n" in fixed(code, *RULES)


LOSSES = {
    "a loss for each row": (
        "nn.CrossEntropyLoss()",
        "for i in range(len(target)):\n    out += criterion(logits[i], target[i])\n",
        "torch.vmap(criterion)(logits[: len(target)], target).sum(0)",
    ),
    "a loss for each step, with targets that do not count": (
        "nn.CrossEntropyLoss(ignore_index=1, label_smoothing=0.1)",
        "for t in range(target.size(1)):\n    out = out + criterion(logits[:, t], target[:, t]) / target.size(1)\n",
        "(torch.vmap(criterion, in_dims=1)(logits[:, : target.size(1)], target) / target.size(1)).sum(0)",
    ),
    "a sum for each pair": (
        "nn.NLLLoss(reduction='sum')",
        "for row, classes in zip(logits, target):\n    out += criterion(row.log_softmax(-1), classes)\n",
        "torch.vmap(lambda row, classes: criterion(row.log_softmax(-1), classes))(",
    ),
    "a number for each row": (
        "nn.CrossEntropyLoss()",
        "for i in range(len(target)):\n    out += criterion(logits[i], target[i]).item()\n",
        "torch.vmap(criterion)(logits[: len(target)], target).sum().item()",
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_that_is_a_mean_over_each_row_is_mapped(name: str) -> None:
    criterion, lines, expected = LOSSES[name]
    code = (
        f"import torch\nfrom torch import nn\n\ncriterion = {criterion}\n\n\n"
        "def f(logits: torch.Tensor, target: torch.Tensor):\n"
        f"    out = 0\n{indent(lines, '    ')}    return torch.as_tensor(out)\n"
    )
    shapes = {"logits": ("n", "p", "m"), "target": ("n", "p")}
    loop = kinds.Generated(code, shapes, indices={"target": "m"})
    new = fixed(code, *RULES)
    assert expected in new
    assert disagreement(loop, new) is None


def test_a_loss_of_every_element_is_not_mapped() -> None:
    code = """\
    import torch
    from torch import nn

    criterion = nn.CrossEntropyLoss(reduction="none")


    def f(logits: torch.Tensor, target: torch.Tensor):
        out = 0
        for i in range(len(target)):
            out += criterion(logits[i], target[i])
        return out
    """
    assert fixed(code, *RULES) == dedent(code)


SUMS = {
    "sum(x.exp())": "x.exp().sum(0)",
    "sum(x) / len(x)": "x.sum(0, dtype=torch.result_type(x, 0)) / len(x)",
    "sum(x > 0)": "(x > 0).sum(0)",
}


@pytest.mark.parametrize("expression", SUMS)
def test_the_rows_that_python_adds_up_are_added_by_torch(expression: str) -> None:
    code = f"import torch\n\n\ndef f(x: torch.Tensor):\n    return torch.as_tensor({expression})\n"
    new = fixed(code, *RULES)
    assert SUMS[expression] in new
    assert disagreement(kinds.Generated(code, {"x": ("n",)}), new) is None
    if "exp" in expression:
        assert disagreement(kinds.Generated(code, {"x": ("n", "p", "q")}), new) is None
    else:
        assert disagreement(kinds.Generated(code, {"x": ("n",)}, parts.INTEGERS), new) is None


def test_a_sum_of_what_may_be_integers_without_a_name_stays_and_says_why() -> None:
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    return sum(x @ x.mT)\n"
    assert fixed(code, *RULES) == code
    assert "a sum of integers has another than its terms" in findings(code, *RULES)[0].no_fix


def test_the_lines_of_what_is_added_up_stay() -> None:
    code = "import torch\n\n\ndef f(x):\n    return sum(torch.exp(x\n                         + 1)) / 2\n"
    assert fixed(code, *RULES).count("\n") == code.count("\n")


def test_the_sum_of_a_list_stays_a_sum() -> None:
    code = "import torch\n\n\ndef f(x, y):\n    rows = [x.exp(), y.exp()]\n    return sum(rows)\n"
    assert fixed(code, *RULES) == code


@pytest.mark.parametrize("test", ["isinstance(x, list)", "many"])
@pytest.mark.parametrize("rest", ["return x.cpu(), x.size(0)", "x = x.cpu()\n    return x"])
def test_what_another_branch_does_with_a_name_says_nothing_of_what_it_is(test: str, rest: str) -> None:
    part = "return torch.cat([row.cpu() for row in x])"
    code = f"import torch\n\n\ndef f(x, many):\n    if {test}:\n        {part}\n    {rest}\n"
    assert fixed(code, *RULES) == code


def test_what_a_network_returns_may_be_a_list() -> None:
    code = (
        "import torch\n\n\ndef f(net, x):\n    outs = net.forward(x)\n    loss = 0\n    for out in outs:\n"
        "        loss += torch.sigmoid(out).mean()\n    return loss\n"
    )
    assert fixed(code, *RULES) == code


def test_a_length_that_each_branch_measures_is_not_negative() -> None:
    code = (
        "import torch\n\n\ndef f(x, m: torch.Tensor):\n    if isinstance(x, list):\n        n = len(x[0])\n    else:\n"
        "        n = x.shape[0]\n    out = torch.zeros(n)\n    for i in range(n):\n"
        "        out[i] = torch.det(m[i, :, :]).log()\n    return out\n"
    )
    after = fixed(code, *RULES)
    assert "torch.det(m[:n])" in after
    assert "max(" in fixed(code.replace("n = x.shape[0]", "n = 3 - x.shape[0]"), *RULES)
