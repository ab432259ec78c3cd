"""The loop vectoriser where one iteration computes in another dtype than whole tensors would: an element that has no
dimensions does not count beside rows that have some."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest

from tests.fixers import loop_parts as parts
from tests.fixers import loops as kinds
from tests.fixers.generated import CASES, RULES, disagreement
from tests.support import fixed
from torchlint.analyses.vectorize import batching

PROMOTED = {
    "a loss of rows and numbers": (
        "out = torch.stack([F.mse_loss(x[i], s[i]) for i in range(n)])",
        "(x - s[:n][:, None]).square().mean(-1)",
    ),
    "the larger of a row and a number": (
        "out = torch.stack([torch.maximum(s[i].exp(), x[i] * F.l1_loss(x[i], y[i])) for i in range(n)])",
        "operand.new_empty(())",
    ),
    "a choice between a number and a row": (
        "out = torch.stack([torch.where(x[i] > 0, s[i].exp(), y[i].softmax(0)) for i in range(n)])",
        ".to(torch.result_type(",
    ),
    "a choice between a number and what may have dimensions": (
        "out = 0\nfor row in x:\n    out += torch.where(u > 0, u, 0 * row.max())",
        "lambda row: torch.where(u > 0, u, (choice := 0 * row.max())).to(torch.result_type(u, choice))",
    ),
    "a choice in a choice": (
        "out = 0\nfor row in x:\n    out += torch.where(u > 0, u.exp(), torch.where(u < 1, row.max(), u.sin()))",
        ".to(torch.result_type(choice",
    ),
    "a quotient of numbers and rows": (
        "out = torch.stack([s[i].exp() / (x[i].sin() + F.l1_loss(x[i], x[i])) for i in range(n)])",
        ".to(torch.result_type(",
    ),
    "what is made of operands whose dtype is made of two": (
        "out = torch.stack([x[i] * F.l1_loss(x[i], y[i]) - (s[i] * u.sum()).exp() for i in range(n)])",
        ".to(torch.result_type(",
    ),
}
SHAPES = {"x": ("n", "p"), "s": ("n",), "u": (), "y": ("n", "p")}


def module(body: str) -> str:
    parameters = ", ".join(f"{name}: torch.Tensor" for name in SHAPES)
    head = "n, p = x.shape\n_, _ = y.shape\n(_,) = s.shape\n"
    code = f"import torch\nimport torch.nn.functional as F\n\n\ndef f({parameters}):\n"
    return code + indent(f"{head}{body}\nreturn out\n", "    ")


@pytest.mark.parametrize("name", PROMOTED)
@pytest.mark.parametrize("of_u", [(), ("p",)])
def test_a_result_has_the_dtype_of_one_iteration(name: str, of_u: tuple[str, ...]) -> None:
    body, expected = PROMOTED[name]
    new = fixed(module(body), *RULES)
    assert expected in new
    loop = kinds.Generated(module(body), {**SHAPES, "u": of_u})
    assert disagreement(loop, new, CASES[parts.FLOATS]) is None
    others = {name: loop.shapes[name] for name in ("s", "x", "u", "y")}
    swapped = kinds.Generated(loop.code.replace(parameters(SHAPES), parameters(others)), others)
    renamed = new.replace(parameters(SHAPES), parameters(others))
    assert disagreement(swapped, renamed, CASES[parts.FLOATS]) is None


def parameters(shapes: dict[str, tuple[str, ...]]) -> str:
    return ", ".join(f"{name}: torch.Tensor" for name in shapes)


def test_no_part_gets_a_name_where_python_allows_none() -> None:
    code = module(
        "rows = [\n    row for row in torch.stack(\n"
        "        [torch.maximum(s[i].exp(), x[i] * F.l1_loss(x[i], y[i])) for i in range(n)]\n    )\n]\nout = rows[0]"
    )
    assert fixed(code, *RULES) == code


RANKS = {
    "numbers that go where more than numbers may be": (
        "out = u.clone()\nfor i in range(n):\n    out[i] = x[i].sum()",
        ({"u": ("n",)}, {"u": ("n", "p")}),
        "out[:n].movedim(0, -1)[...] = x.sum(-1)",
    ),
    "numbers that are added where more than numbers may be": (
        "out = u.clone()\nplaces = torch.randperm(n)\nfor i in range(n):\n    out[places[i]] += x[i].sum()",
        ({"u": ("n",)}, {"u": ("n", "p")}),
        ".view(-1, *[1] * (out.dim() - 1))",
    ),
    "what is added to a number, which is one": (
        "out = torch.zeros(n, dtype=x.dtype)\nplaces = torch.arange(n)\nfor i in range(n):\n    out[places[i]] += u[i]",
        ({"u": ("n",)},),
        "out.index_put_((places[:n].long(),), (u[:n])",
    ),
    "a member of what is the same in every iteration": (
        "out = torch.stack([y.max(0).values * x[i] + y.sort(0)[0][0] for i in range(n)])",
        ({"u": ()},),
        "out = y.max(0).values * x + y.sort(0)[0][0]",
    ),
    "a vector, as no other product takes": (
        "a, b = u.shape\nout = torch.stack([torch.dot(u[i].view(u[i].shape), y[i]) for i in range(n)])",
        ({"u": ("n", "p")},),
        " * y",
    ),
    "vectors, of each row with each": (
        "out = torch.zeros(n)\nfor i in range(n):\n    for k in range(n):\n        out[i] += (x[i] @ y[k]).exp()",
        ({"u": ()},),
        "(x @ y[:n].T).exp()",
    ),
    "a view of as many sizes": (
        "out = torch.stack([x[i].view(1, p).view(x[i][None].shape) @ y[i] for i in range(n)])",
        ({"u": ()},),
        " @ y",
    ),
    "elements that are repeated": (
        "out = torch.stack([torch.repeat_interleave(x[i], 2) for i in range(n)])",
        ({"u": ()},),
        "torch.vmap(lambda x_i: torch.repeat_interleave(x_i, 2))(x)",
    ),
    "the logarithm of a determinant": (
        "one = torch.eye(p, dtype=x.dtype)\nout = torch.stack(\n"
        "    [torch.linalg.slogdet(torch.outer(x[i], x[i]) + one).logabsdet * one.slogdet()[0] for i in range(n)]\n)",
        ({"u": ()},),
        ".logabsdet * one.slogdet()[0]",
    ),
}


@pytest.mark.parametrize("name", RANKS)
def test_what_the_operations_say_of_ranks_is_enough(name: str) -> None:
    body, shapes, expected = RANKS[name]
    new = fixed(module(body), *RULES)
    assert expected in new
    assert " for " not in new.split("def f")[1]
    for of_u in shapes:
        loop = kinds.Generated(module(body), {**SHAPES, **of_u})
        assert disagreement(loop, new, CASES[parts.FLOATS]) is None


OWN = "def centred(r):\n    return r - r.mean()\n\n\ndef drawn(r):\n    return r + torch.rand(1)\n\n\n"


@pytest.mark.parametrize("value", ["centred(y[0])", "y[0].roll(1)", "torch.roll(y, 1, 0)[0]"])
def test_what_is_computed_of_nothing_that_varies_is_computed_once(value: str) -> None:
    code = module(f"out = torch.stack([{value} * x[i] for i in range(n)])").replace("def f", f"{OWN}def f")
    new = fixed(code, *RULES)
    assert f"out = {value} * x\n" in new
    assert disagreement(kinds.Generated(code, SHAPES), new) is None


@pytest.mark.parametrize("value", ["drawn(y[0])", "torch.bernoulli(y[0])", "y[0].add_(1)"])
def test_what_has_another_value_each_time_is_not_computed_once(value: str) -> None:
    code = module(f"out = torch.stack([{value} * x[i] for i in range(n)])").replace("def f", f"{OWN}def f")
    assert fixed(code, *RULES) == code


def test_repeats_that_a_tensor_says_are_not_mapped() -> None:
    code = module(
        "k = torch.ones(p, dtype=torch.int64)\nout = torch.stack([x[i].repeat_interleave(k) for i in range(n)])"
    )
    assert fixed(code, *RULES) == code


@pytest.mark.parametrize("of", ["x[i]", "y"])
def test_a_long_chain_of_what_has_no_form_is_read_in_as_many_steps(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    apply = batching.apply

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return apply(*arguments)

    monkeypatch.setattr(batching, "apply", counted)
    fixed(module(f"out = torch.stack([{of}{'.view(p, 1)' * 9} * x[i] for i in range(n)])"), *RULES)
    assert len(calls) < 400
