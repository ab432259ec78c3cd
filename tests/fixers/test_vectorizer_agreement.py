"""The loop vectoriser: what it rewrites computes the same, and what it must not touch it leaves alone."""

from __future__ import annotations

from random import Random
from textwrap import indent

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.fixers import loop_parts as parts
from tests.fixers import loops as kinds
from tests.fixers.generated import CASES, RULES, disagreement, loops, offered, outcome, runs
from tests.fixers.kept_loops import KEPT
from tests.support import findings, fixed

FLOATS, COMPLEX = CASES[parts.FLOATS], CASES[parts.COMPLEX]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.integers(0, 2**32))
def test_generated_loops_agree(seed: int) -> None:
    loop = kinds.Maker(Random(seed)).loop()
    assume(runs(loop))
    new = offered(loop.code)
    assert new == loop.code or disagreement(loop, new) is None, loop.code


def test_most_generated_loops_are_rewritten() -> None:
    outcomes = [outcome(loop) for loop in loops(60)]
    assert sum(one.is_rewritten for one in outcomes) >= 46
    assert sum(one.is_applied for one in outcomes) >= 27


PLANTED_SEEDS = (6, 9, 10)  # of loops that are rewritten where no dependence is planted in them


@pytest.mark.parametrize("lines", parts.INDEPENDENT)
def test_loops_without_a_planted_dependence_are_rewritten(lines: tuple[str, ...]) -> None:
    for seed in PLANTED_SEEDS:
        loop = kinds.planted(Random(seed), lines)
        assert fixed(loop.code, *RULES) != loop.code


@pytest.mark.parametrize("lines", parts.PLANTED)
def test_loops_with_a_planted_dependence_are_left_alone(lines: tuple[str, ...]) -> None:
    for seed in PLANTED_SEEDS:
        loop = kinds.planted(Random(seed), lines)
        assert offered(loop.code) == loop.code


# A body over x (n, p), y (n, p), w (p, q), v (n, q, p) and s (n,), and the cases it must agree on.
FORMS = {
    "fill": (
        """\
out = torch.zeros(n, p)
for i in range(n):
    out[i] = 2 * x[i] + 1
""",
        FLOATS,
    ),
    "fill element by element": (
        """\
out = torch.empty(n, p)
for i in range(n):
    for j in range(p):
        out[i, j] = x[i, j] * y[i, j]
""",
        FLOATS,
    ),
    "fill columns": (
        """\
out = torch.zeros(p, n)
for i in range(n):
    out[:, i] = x[i] / 3
""",
        FLOATS,
    ),
    "fill with a temporary": (
        """\
out = torch.zeros(n)
for i in range(n):
    d = x[i] - y[i]
    d = d * d
    out[i] = d.sum()
""",
        FLOATS,
    ),
    "fill in place": (
        """\
out = x * 1
for i in range(n):
    out[i] = out[i] / out[i].norm()
""",
        FLOATS,
    ),
    "fill two": (
        """\
a = torch.zeros(n, q)
out = torch.zeros(n, q)
for i in range(n):
    a[i] = x[i] @ w
    out[i] = a[i] * 2 + 1
""",
        FLOATS[:1],
    ),
    "append and stack": (
        """\
rows = []
for i in range(len(x)):
    rows.append(torch.exp(x[i]).sum())
out = torch.stack(rows)
""",
        FLOATS,
    ),
    "append and stack later": (
        """\
rows = []
for i in range(len(x)):
    rows.append(x[i] * 2)
x = x + 1
out = torch.stack(rows, dim=1)
""",
        FLOATS,
    ),
    "append and cat": (
        """\
rows = []
for row in x:
    rows.append(row * 2)
out = torch.cat(rows)
""",
        FLOATS,
    ),
    "append in two loops": (
        """\
rows = []
for i in range(n):
    for j in range(q):
        rows.append(v[i, j] + x[i])
out = torch.stack(rows)
""",
        FLOATS,
    ),
    "a list of lists": (
        """\
rows = []
for i in range(n):
    row = []
    for j in range(q):
        row.append(v[i, j].max())
    rows.append(torch.stack(row))
out = torch.stack(rows)
""",
        FLOATS,
    ),
    "a mean of a list": (
        """\
rows = []
for i in range(n):
    rows.append(x[i].norm())
out = sum(rows) / len(rows)
""",
        FLOATS,
    ),
    "comprehension": ("out = torch.stack([a / a.norm() for a in x])", FLOATS),
    "comprehension over two": ("out = torch.stack([(a - b).abs().mean() for a, b in zip(x, y)])", FLOATS),
    "comprehension in comprehension": (
        "out = torch.stack([torch.stack([v[i, j].sum() for j in range(q)]) for i in range(n)])",
        FLOATS,
    ),
    "sum of a generator": ("out = sum((x[i] - y[i]).square().mean() for i in range(n))", FLOATS),
    "zip of different lengths": ("out = torch.stack([a + b for a, b in zip(x, y[1:])])", FLOATS),
    "enumerate": (
        """\
out = torch.zeros_like(x)
for i, row in enumerate(x):
    out[i] = torch.relu(row)
""",
        FLOATS,
    ),
    "accumulate": (
        """\
out = 0.0
for i in range(n):
    out += torch.norm(x[i]) ** 2 / torch.norm(y[i]) ** 2
""",
        FLOATS,
    ),
    "accumulate in a scalar per row": (
        """\
out = torch.zeros(n)
for i in range(n):
    t = 0.0
    for j in range(p):
        t += x[i, j] * y[i, j]
    out[i] = t
""",
        FLOATS,
    ),
    "accumulate outer products": (
        """\
out = torch.zeros(p, p, dtype=x.dtype)
for i in range(n):
    out += x[i].unsqueeze(1) @ x[i].unsqueeze(0)
""",
        FLOATS,
    ),
    "accumulate over an inner loop": (
        """\
out = torch.zeros(n, p)
for i in range(n):
    for j in range(q):
        out[i] += v[i, j] * x[i]
""",
        FLOATS,
    ),
    "differences": (
        """\
out = torch.zeros(p)
for j in range(p - 1):
    out[j] = x[0, j + 1] - x[0, j]
""",
        FLOATS,
    ),
    "from the second on": (
        """\
out = torch.zeros(n, p)
for i in range(1, n):
    out[i] = x[i] - x[i - 1]
""",
        FLOATS,
    ),
    "gather": (
        """\
order = torch.randperm(n)
out = torch.stack([x[order[i]] for i in range(n)])
""",
        FLOATS,
    ),
    "columns": ("out = torch.stack([x[:, j].mean() for j in range(p)])", FLOATS),
    "last axis": ("out = torch.stack([v[..., j].sum(0) for j in range(p)])", FLOATS),
    "arg max": ("out = torch.stack([row.argmax() for row in x])", FLOATS),
    "values of max": ("out = torch.stack([v[i].max(dim=0).values + v[i].max(1)[0].mean() for i in range(n)])", FLOATS),
    "softmax": ("out = torch.stack([torch.softmax(v[i], dim=0) for i in range(n)])", FLOATS),
    "normalize": ("out = torch.stack([F.normalize(v[i], dim=0) for i in range(n)])", FLOATS),
    "cosine": ("out = torch.stack([F.cosine_similarity(x[i], y[i], dim=0) for i in range(n)])", FLOATS),
    "loss": (
        """\
out = 0
for i in range(n):
    out = out + F.mse_loss(x[i], y[i])
""",
        FLOATS,
    ),
    "loss module": (
        """\
out = torch.zeros(n)
for i in range(n):
    out[i] = torch.nn.MSELoss()(x[i], y[i])
""",
        FLOATS,
    ),
    "shared matrix": ("out = torch.stack([x[i] @ w for i in range(n)])", FLOATS),
    "matrix and vectors": (
        """\
m = w.t()
out = torch.stack([m @ x[i] for i in range(n)])
""",
        FLOATS,
    ),
    "matrices and vectors": ("out = torch.stack([v[i] @ x[i] for i in range(n)])", FLOATS),
    "vectors and matrices": ("out = torch.stack([x[i] @ v[i].t() for i in range(n)])", FLOATS),
    "gram": ("out = torch.stack([v[i] @ v[i].T for i in range(n)])", FLOATS),
    "dot": ("out = torch.stack([torch.dot(x[i], y[i]) for i in range(n)])", FLOATS),
    "dot over pairs": (
        """\
out = torch.zeros(n, n)
for i in range(n):
    for k in range(n):
        out[i, k] = torch.dot(x[k], y[i])
""",
        FLOATS,
    ),
    "outer": ("out = torch.stack([torch.outer(x[i], y[i]) for i in range(n)])", FLOATS),
    "quadratic form": ("out = torch.stack([x[i] @ (w @ w.t()) @ y[i] for i in range(n)])", FLOATS),
    "einsum": ("out = torch.stack([torch.einsum('qp,p->q', v[i], x[i]) for i in range(n)])", FLOATS),
    "einsum over pairs": (
        """\
out = torch.zeros(n, n)
for i in range(n):
    for k in range(n):
        out[i, k] = torch.einsum('p,p', x[i], y[k])
""",
        FLOATS,
    ),
    "pairs": (
        """\
out = torch.zeros(n, n)
for i in range(n):
    for k in range(n):
        out[i, k] = (x[i] - y[k]).norm()
""",
        FLOATS,
    ),
    "linear": ("out = torch.stack([F.linear(v[i], w.t()) for i in range(n)])", FLOATS),
    "solve": (
        """\
eye = torch.eye(q, dtype=x.dtype)
out = torch.stack([torch.linalg.solve(v[i] @ v[i].mT + eye, v[i] @ x[i]) for i in range(n)])
""",
        FLOATS,
    ),
    "solve for right-hand sides that fewer loops vary": (
        """\
eye = 9 * torch.eye(p, dtype=x.dtype)
out = torch.zeros(n, n, p, q)
for i in range(n):
    for k in range(n):
        out[i, k] = torch.linalg.solve(v[i].t() @ v[k] + eye, v[k].t())
""",
        FLOATS,
    ),
    "complex": (
        """\
out = torch.zeros(n, q, dtype=x.dtype)
for i in range(n):
    out[i] = v[i].conj() @ x[i] * 2
""",
        COMPLEX,
    ),
    "power of complex rows": ("out = torch.stack([x[i].abs().square().mean() for i in range(n)])", COMPLEX),
}
SHAPES = {"x": ("n", "p"), "y": ("n", "p"), "w": ("p", "q"), "v": ("n", "q", "p"), "s": ("n",)}


def module(body: str) -> str:
    parameters = ", ".join(f"{name}: torch.Tensor" for name in SHAPES)
    head = "n, p = x.shape\n_, _ = y.shape\n_, q = w.shape\n_, _, _ = v.shape\n(_,) = s.shape\n"
    return f"import torch\nimport torch.nn.functional as F\n\n\ndef f({parameters}):\n" + indent(
        head + body + "\nreturn out\n", "    "
    )


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_rewritten_and_agrees(name: str) -> None:
    body, cases = FORMS[name]
    kind = parts.COMPLEX if cases is COMPLEX else parts.FLOATS
    loop = kinds.Generated(module(body), SHAPES, kind)
    new = fixed(loop.code, *RULES)
    assert "for " not in new.split("def f")[1]
    assert disagreement(loop, new, cases) is None


@pytest.mark.parametrize("name", KEPT)
def test_a_loop_that_must_stay_stays(name: str) -> None:
    code = module(KEPT[name])
    assert fixed(code, *RULES) == code


REPORTED = {
    "a list that is made beside another",
    "a list with two names",
    "alias of an operand",
    "alias of the target",
    "an alias of a sum",
    "branch on values",
    "filter",
    "in place on an operand",
    "own function",
    "row read after the loop",
    "wraps around",
}
SILENT = set(KEPT) - REPORTED


@pytest.mark.parametrize("name", sorted(SILENT))
def test_a_loop_that_is_no_row_work_is_not_reported(name: str) -> None:
    assert findings(module(KEPT[name]), *RULES) == []


@pytest.mark.parametrize("name", sorted(REPORTED))
def test_row_work_that_cannot_be_rewritten_is_reported_once(name: str) -> None:
    assert len(findings(module(KEPT[name]), *RULES)) == 1


def test_comments_stay() -> None:
    code = module(
        "out = torch.zeros(n, p)\nfor i in range(n):  # every row\n    # twice\n    t = x[i] * 2  # doubled\n\n"
        "    out[i] = t\n    # the end"
    )
    new = fixed(code, *RULES)
    assert [part.strip() for part in new.split("out = torch.zeros(n, p)\n")[1].splitlines()] == [
        "# every row",
        "# twice",
        "t = x * 2  # doubled",
        "out[:] = t",
        "# the end",
        "return out",
    ]
