"""The loop vectoriser where the index of a loop is a number of its own: `torch.arange` holds it for all rows."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.fixers import loops as kinds
from tests.fixers.generated import CASES, RULES, disagreement
from tests.fixers.loop_parts import FLOATS, INTEGERS
from tests.fixers.test_vectorizer_agreement import SHAPES, module
from tests.support import fixed

FORMS = {
    "as it is": ("out = torch.zeros(n, p)\nfor i in range(n):\n    out[i] = i\n", "torch.arange(n, device=out.device)"),
    "in a column": ("out = torch.zeros(p, n)\nfor i in range(n):\n    out[:, i] = i\n", "out[:] = torch.arange(n"),
    "added in place": ("out = x.clone()\nfor i in range(n):\n    out[i] += i * p\n", "torch.arange(n"),
    "of a fraction": ("out = torch.zeros(n)\nfor i in range(n):\n    out[i] = 1 - abs(i / p - 0.5)\n", ".double() / p"),
    "of two loops": (
        "out = torch.zeros(n, p)\nfor i in range(n):\n    for j in range(p):\n        out[i, j] = i * p + j\n",
        "(torch.arange(n, device=out.device) * p)[:, None] + torch.arange(p, device=out.device)",
    ),
    "with a name": ("out = torch.zeros(n)\nfor i in range(n):\n    half = i // 2\n    out[i] = half + 1\n", "// 2 + 1"),
    "compared": ("out = torch.zeros(n)\nfor i in range(n):\n    out[i] = (s > i).sum()\n", "device=s.device)[:, None]"),
    "beside a row": (
        "x = x.double()\nout = torch.zeros(n, p, dtype=torch.float64)\nfor i in range(n):\n    out[i] = x[i] * i\n",
        "x * torch.arange(n, device=x.device)[:, None]",
    ),
    "from one on": ("out = torch.zeros(n)\nfor i in range(1, n):\n    out[i] = i\n", "device=out.device)[1:]"),
    "as a place": ("out = torch.zeros(n)\nfor i in range(n):\n    out[i] = s[i // 2]\n", "s[torch.arange(n) // 2]"),
    "marking": ("out = torch.zeros(2 * n)\nfor i in range(n):\n    out[2 * i + 1] = 1\n", "2 * torch.arange(n) + 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("kind", [FLOATS, INTEGERS])
def test_an_index_is_reckoned_with_for_all_rows(name: str, kind: str) -> None:
    body, held = FORMS[name]
    loop = kinds.Generated(module(body), SHAPES, kind)
    new = fixed(loop.code, *RULES)
    assert held in new, new
    assert disagreement(loop, new, CASES[kind]) is None


@pytest.mark.parametrize(
    "made", ["torch.zeros(n, dtype=torch.uint8)", "torch.zeros(n, dtype=torch.half)", "x.new_zeros(n)"]
)
def test_a_dtype_that_may_be_too_small_for_the_index_is_no_safe_fix(made: str) -> None:
    loop = "    for i in range(n):\n        out[i] = i\n"
    code = f"import torch\n\n\ndef f(x: torch.Tensor, n: int):\n    out = {made}\n{loop}    return out\n"
    assert fixed(code, *RULES, unsafe=False) == code
    assert "torch.arange" in fixed(code, *RULES)
    wide = code.replace(made, "torch.zeros(n)")
    assert "torch.arange" in fixed(wide, *RULES, unsafe=False)


def test_what_may_choose_as_a_mask_does_is_no_safe_fix() -> None:
    code = """\
import torch


def f(labels: torch.Tensor):
    (n,) = labels.shape
    out = torch.zeros(9)
    for i in range(n):
        out[labels[i]] = 1
    return out
"""
    assert fixed(code, *RULES, unsafe=False) == code
    assert "out[labels.long()] = 1" in fixed(code, *RULES)
    whole = code.replace("    (n,)", "    labels = labels.long()\n    (n,)")
    assert "out[labels] = 1" in fixed(whole, *RULES, unsafe=False)


@pytest.mark.parametrize("count", [3, 1, 0, -2])
def test_a_count_below_nothing_is_none(count: int) -> None:
    code = """\
import torch


def f(x: torch.Tensor, count: int):
    out = torch.zeros(4, 5)
    for k in range(count):
        out[0, k] = (x == k).sum() * 2
    return out
"""
    new = fixed(code, *RULES)
    assert "torch.arange(max(count, 0)" in new, new
    results = []
    for text in (code, new):
        names: dict[str, Any] = {}
        exec(text, names)
        results.append(names["f"](torch.arange(6).view(2, 3) % 3, count))
    assert torch.equal(*results)


@pytest.mark.parametrize(
    "line",
    [
        "out[i] = 1 / (i + 1)",  # Python raises where torch gives no number
        "out[i] = 2**i",  # of which Python knows more digits
        "out[i] = s[i] if i % 2 else 0",
        "out[s[i].long()] = i",  # several may have the same place
        "out[i // 2] = i",
        "out[i] = torch.full((), i)",
        "out[i] = torch.roll(s, i).sum()",
        "total += i",
        "rows.append(i)",
    ],
)
def test_what_only_a_number_of_python_can_do_keeps_its_loop(line: str) -> None:
    body = f"out = torch.zeros(n)\ntotal, rows = 0, []\nfor i in range(n):\n    {line}\n"
    assert fixed(module(body), *RULES) == module(body)


def test_numbers_are_rounded_as_python_rounds_them() -> None:
    code = module("out = torch.zeros(n, dtype=torch.float64)\nfor i in range(n):\n    out[i] = i * 0.1\n")
    new = fixed(code, *RULES, unsafe=False)
    assert "torch.arange(n).double() * 0.1" in new
    assert disagreement(kinds.Generated(code, SHAPES), new) is None


@pytest.mark.parametrize(
    "made", ["list(range(n))", "[k for k in range(n - 1, -1, -1)]", "sorted(range(n), key=lambda k: -k)[: n // 2]"]
)
def test_a_list_of_integers_picks_rows_as_it_is(made: str) -> None:
    code = module(
        f"picked = {made}\nout = torch.zeros(len(picked), p, dtype=x.dtype)\n"
        "for i, j in enumerate(picked):\n    out[i] = x[j]\n"
    )
    new = fixed(code, *RULES)
    if new == code:
        pytest.skip("what the list holds is not known")
    assert "out[:] = x[picked]" in new, new
    assert disagreement(kinds.Generated(code, SHAPES), new) is None


def test_a_choice_by_the_index_is_made_for_all_rows() -> None:
    body = """\
out = torch.zeros(n, p)
for i in range(n):
    for j in range(p):
        out[i][j] = math.sin(i / 100 ** (j / p)) if j % 2 == 0 else math.cos(i / 100 ** ((j - 1) / p))
"""
    code = module(body).replace("import torch\n", "import math\n\nimport torch\n", 1)
    new = fixed(code, *RULES)
    assert "torch.where(torch.arange(p) % 2 == 0," in new, new
    assert disagreement(kinds.Generated(code, SHAPES), new, CASES[FLOATS]) is None


def test_rows_that_are_only_counted_need_be_no_tensors() -> None:
    body = "labels = [1, 2] * n\nout = torch.zeros(2 * n, p)\nfor k, _ in enumerate(labels):\n    out[k] = k\n"
    code = module(body)
    new = fixed(code, *RULES)
    assert "torch.arange(len(labels)" in new, new
    assert disagreement(kinds.Generated(code, SHAPES), new, CASES[FLOATS]) is None


def test_a_temporary_with_an_annotation_is_one_for_all_rows() -> None:
    code = module("out = torch.zeros(n)\nfor i in range(n):\n    row: torch.Tensor = x[i]\n    out[i] = row.sum()\n")
    new = fixed(code, *RULES)
    assert "for " not in new.split("def f")[1]
    assert disagreement(kinds.Generated(code, SHAPES), new, CASES[FLOATS]) is None


def test_sums_in_the_tests_of_two_branches_are_not_of_one_statement() -> None:
    tests = "if sum(s) > 0:\n    out = out + 1\nif sum(s) > 3:\n    out = out + 1\n"
    new = fixed(module(f"out = x * 1\n{tests}"), *RULES)
    assert new.count("s.sum(0") == 2, new
    both = module("out = sum(s) * sum(given(s))\n")
    assert fixed(both, *RULES) == both


def test_an_index_goes_where_the_rows_are_and_not_where_their_places_are() -> None:
    made = "at = torch.randperm(n)\nout = torch.zeros(n, p)\n"
    code = module(f"{made}for i in range(n):\n    out[i] = y[at[i]] > i\n")
    new = fixed(code, *RULES)
    assert "y[at[:n]] > torch.arange(n, device=y.device)" in new, new
    assert disagreement(kinds.Generated(code, SHAPES), new, CASES[FLOATS]) is None
