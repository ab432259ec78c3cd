"""Branches in the loops that the vectoriser rewrites: where a condition holds for no row, a loop meets none of the
errors that a batch of no rows raises."""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

import pytest
import torch

from tests.fixers import loop_parts as parts
from tests.fixers import loops as kinds
from tests.fixers.agreement import Case
from tests.fixers.generated import CASES, RULES, SIZES, disagreement
from tests.support import fixed

SHAPES = {"c": ("n", "p"), "d": ("n", "p", "p"), "e": ("n", "p", "p"), "g": ("n", "p"), "w": ("p", "p")}
MIXED = Case(SIZES, torch.float32, other=torch.float64, graph=False)
SPECTRUM = "def spectrum(r):\n    s = torch.fft.fft(r)\n    return (s * s.conj()).real\n"


def module(condition: str, *branches: str, own: str = "") -> kinds.Generated:
    taken = [
        f"    if {condition}:\n        {branches[0]}\n",
        *(f"    else:\n        {text}\n" for text in branches[1:]),
    ]
    lines = f"n, p, q = d.shape\n_, _ = c.shape\n_, _ = w.shape\nout = c.clone()\nfor i in range(n):\n{''.join(taken)}"
    parameters = ", ".join(f"{name}: torch.Tensor" for name in SHAPES)
    code = f"import torch\nimport torch.nn.functional as F\n\n\n{own}\n\ndef f({parameters}):\n{indent(lines, '    ')}"
    return kinds.Generated(f"{code}    return out\n", SHAPES)


NEVER, SOMETIMES, ALWAYS = "c[i].sum() > 1000", "c[i].sum() > 0", "c[i].sum() < 1000"
# What a branch does, and what of it must not be done for no rows.
GUARDED = {
    "a product of a solution": "out[i] = torch.mv(d[i], torch.linalg.solve(e[i], g[i]))",
    "a product with the operator": "out[i] = e[i] @ g[i]",
    "a product with a matrix of all rows": "out[i] = w @ g[i]",
    "a product that is the same in every iteration": "out[i] = (w @ d[0])[0]",
    "an inverse that is the same in every iteration": "out[i] = torch.linalg.inv(w)[0] * c[i]",
    "rows of such an inverse": "out[i] = torch.linalg.inv(d[0])[0]",
    "an equation": "out[i] = torch.einsum('ab,b->a', e[i], g[i])",
    "a layer": "out[i] = F.linear(g[i], w)",
    "a way between two rows": "out[i] = torch.lerp(c[i], g[i], 0.5)",
    "a transform": "out[i] = torch.fft.fft(c[i]).real",
    "what no table batches": "out[i] = torch.roll(c[i], 1)",
    "a function of the file": "out[i] = spectrum(c[i])",
    "a sum": "out[i] += e[i] @ g[i]",
}


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("condition", [NEVER, SOMETIMES, ALWAYS])
def test_what_may_fail_for_no_rows_is_done_where_there_are_some(name: str, condition: str) -> None:
    loop = module(condition, GUARDED[name], own=SPECTRUM)
    new = fixed(loop.code, *RULES)
    assert "    if chosen.any():\n        out" in new
    for case in (*CASES[parts.FLOATS], MIXED):
        assert disagreement(loop, new, [case]) is None


@pytest.mark.parametrize("condition", [NEVER, SOMETIMES, ALWAYS])
def test_the_other_branch_is_taken_where_the_condition_does_not_hold_for_all(condition: str) -> None:
    loop = module(condition, "out[i] = e[i] @ g[i]", "out[i] = torch.roll(c[i], 1)")
    new = fixed(loop.code, *RULES)
    assert "    if chosen.any():\n" in new
    assert "    if not chosen.all():\n" in new
    for case in (*CASES[parts.FLOATS], MIXED):
        assert disagreement(loop, new, [case]) is None


@pytest.mark.parametrize("value", ["d[i] @ d[i][0]", "2 * c[i]", "c[i] - g[i].mean()", "c[i].cumsum(0)"])
def test_what_runs_for_no_rows_stands_under_no_condition(value: str) -> None:
    loop = module(SOMETIMES, f"out[i] = {value}")
    new = fixed(loop.code, *RULES)
    assert "chosen.any()" not in new
    assert "[chosen]" in new
    assert disagreement(loop, new) is None


def test_scalars_are_mapped_where_the_condition_holds_for_some() -> None:
    code = (
        "import torch\n\n\ndef f(a: torch.Tensor, b: torch.Tensor):\n    out = a.clone()\n    for i in range(len(a)):\n"
        "        if a[i] >= {}:\n            out[i] = torch.exp(b * a[i])\n    return out\n"
    )
    for least in (0, 1000):
        loop = kinds.Generated(code.format(least), {"a": ("n",), "b": ()})
        new = fixed(loop.code, *RULES)
        assert "    if chosen.any():\n" in new
        assert disagreement(loop, new) is None
        sizes = [replace(case, sizes={**case.sizes, "n": 1}) for case in CASES[parts.FLOATS]]
        assert disagreement(loop, new, sizes) is None


@pytest.mark.parametrize("value", ["torch.linalg.inv(d[i])[0]", "torch.linalg.cholesky(d[i] @ d[i].mT)[0]"])
def test_a_part_of_what_is_computed_is_computed_of_the_chosen_rows_alone(value: str) -> None:
    loop = module("d[i].sum() != 0", f"out[i] = {value}")
    new = fixed(loop.code, *RULES)
    assert new != loop.code
    results = []
    for code in (loop.code, new):
        space: dict[str, object] = {}
        exec(code, space)
        torch.manual_seed(1)
        inputs = [torch.randn([SIZES[dim] for dim in dims]).abs() for dims in SHAPES.values()]
        inputs[1][2] = 0  # a matrix that has no inverse
        results.append(space["f"](*inputs))  # type: ignore[operator]
    assert torch.allclose(*results)


LOOKUP = """
import torch

def f(a: torch.Tensor, labels: torch.Tensor, table: torch.Tensor, x: torch.Tensor):
    n, = a.shape
    n, = labels.shape
    m, = table.shape
    n, m = x.shape
    longer = torch.cat((x, x))
    out = a.clone()
    for i in range(a.shape[0]):
        if {condition}:
            {statement}
    return out
"""
LABELS = [torch.tensor([0, -100, 2, 1]), torch.tensor([-100] * 4), torch.tensor([2, 0, 1, 1])]


@pytest.mark.parametrize(
    ("condition", "statement", "is_rewritten"),
    [
        ("labels[i] >= 0", "out[i] = table[labels[i]]", True),
        ("labels[i] >= 0", "out[i] += table[labels[i]] * a[i]", True),
        ("labels[i] >= 0", "out[i] = x[i, labels[i]]", True),
        ("labels[i] >= 0", "out[i] += x.t()[labels[i], i] ** 2", True),
        ("labels[i] >= 0", "out[i] = longer[i, labels[i]]", True),
        ("labels[i] >= 0", "out[i] = longer[i + 1, labels[i]]", False),
        ("labels[i] >= 0 and table[labels[i]] > 0", "out[i] = 0.0", False),
        ("a[i] > 0 and labels[i] >= 0", "out[i] = table[labels[i]]", True),
    ],
)
def test_no_place_is_looked_up_where_the_condition_does_not_hold(
    condition: str, statement: str, is_rewritten: bool
) -> None:
    code = LOOKUP.format(condition=condition, statement=statement)
    after = fixed(code, *RULES)
    assert ("for i in" not in after) is is_rewritten
    before, now = {}, {}  # type: ignore[var-annotated]
    exec(code, before)
    exec(after, now)
    for labels in LABELS:
        a, table, x = torch.randn(4), torch.randn(3), torch.randn(4, 3)
        torch.testing.assert_close(now["f"](a, labels, table, x), before["f"](a, labels, table, x))
