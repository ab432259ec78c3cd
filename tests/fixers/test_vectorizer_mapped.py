"""The loop vectoriser where ranks are known and the table of batching rules has no form for an operation: it is mapped
with `torch.vmap`, by itself, or the loop stays and says why."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.fixers import loops as kinds
from tests.fixers.generated import RULES, disagreement
from tests.support import findings, fixed

SHAPES = {"x": ("n", "p"), "y": ("n", "p")}
HEAD = "import math\nimport torch\nimport torch.nn.functional as F\n\nSCALE = 3.0\nLIMITS = [3.0]\nCOUNT = 0\n"
OWN = {
    "spectrum": "def spectrum(r, k=2.0):\n    s = torch.fft.fft(r)\n    return (s * s.conj()).real / k\n",
    "scaled": "def scaled(r):\n    return torch.roll(r, 1) * SCALE / math.sqrt(r.shape[0])\n",
    "of_both": "def of_both(r, s):\n    return scaled(r) + torch.diff(s, prepend=s[:1])\n",
    "first": "def first(r):\n    return r.roll(1)[:2]\n",
}


def module(lines: str, own: str = "") -> str:
    needed = lines + own + "scaled" * ("of_both" in lines)
    found = "".join(f"\n\n{text}" for text in (*(text for name, text in OWN.items() if name in needed), own) if text)
    head = "def f(x: torch.Tensor, y: torch.Tensor):\n    n, p = x.shape\n    _, q = y.shape\n"
    return f"{HEAD}{found}\n\n{head}{indent(lines, '    ')}"


STACKED = "return torch.stack([{} for i in range(n)])\n"
REWRITTEN = {
    "only the operation itself is mapped": (
        STACKED.format("torch.roll(x[i] + 1, 2).abs() * y[i]"),
        "torch.vmap(lambda x_i: torch.roll(x_i + 1, 2))(x).abs() * y[:n]",
    ),
    "a function of the file": (STACKED.format("spectrum(x[i])"), "return torch.vmap(spectrum)(x)\n"),
    "a number for each call": (STACKED.format("spectrum(x[i], p)"), "torch.vmap(lambda x_i: spectrum(x_i, p))(x)"),
    "functions that call each other": (
        STACKED.format("of_both(x[i], y[i]) + of_both(y[i], x[i])"),
        "torch.vmap(of_both)(x, y[:n]) + torch.vmap(of_both)(y[:n], x)",
    ),
    "a part of a row that would be a part of all of them": (
        STACKED.format("first(x[i])").replace("return", "out =") + "out += 1\nreturn out * x.sum()\n",
        "torch.vmap(first)(x).clone()",
    ),
    "windows of a row that would be a part of all of them": (
        STACKED.format("x[i].unfold(0, 2, 1)").replace("return", "out =") + "out += 1\nreturn out * x.sum()\n",
        "torch.vmap(lambda x_i: x_i.unfold(0, 2, 1))(x).clone()",
    ),
    "what fails for no rows": (
        "out = torch.zeros(n, p)\nfor i in range(n):\n    out[i] = spectrum(x[i])\nreturn out\n",
        "if n > 0:\n        out[:] = torch.vmap(spectrum)(x)",
    ),
    "a transform, which takes all rows as it is": (
        STACKED.format("torch.fft.fft(x[i]).abs()"),
        "return torch.fft.fft(x).abs()\n",
    ),
    "a transform along a dimension, which there is none of for no rows": (
        "out = torch.zeros(n, p)\nfor i in range(n):\n    out[i] = torch.fft.fft(x[i], dim=0).real\nreturn out\n",
        "if n > 0:\n        out[:] = torch.fft.fft(x, dim=-1).real",
    ),
    "a layer without weights": (STACKED.format("F.layer_norm(x[i], (p,))"), "return F.layer_norm(x, (p,))\n"),
    "two loops": (
        "out = torch.zeros(n, n)\nfor i in range(n):\n    for j in range(n):\n"
        "        out[i, j] = torch.dist(x[i], y[j])\nreturn out\n",
        "torch.vmap(torch.vmap(torch.dist, in_dims=(None, 0)), in_dims=(0, None))(x, y[:n])",
    ),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_what_no_table_batches_is_mapped(name: str) -> None:
    lines, expected = REWRITTEN[name]
    code = module(lines)
    new = fixed(code, *RULES)
    assert expected in new
    assert disagreement(kinds.Generated(code, SHAPES), new) is None


DRAWN = "def own(r):\n    return r + torch.rand(1)\n"
LEFT = {
    "random numbers": ("own(x[i])", DRAWN, "`torch.rand` may do anything"),
    "random numbers in a function further in": (
        "outer(x[i])",
        f"{DRAWN}\n\ndef outer(r):\n    return own(r) * 2\n",
        "`torch.rand` may do anything",
    ),
    "a change in place": ("own(x[i])", "def own(r):\n    r += 1\n    return r\n", "`own` does more than compute"),
    "a method that changes its tensor": ("own(x[i])", "def own(r):\n    return r.add_(1)\n", "may do anything"),
    "a branch on a value": (
        "own(x[i])",
        "def own(r):\n    if r.sum() > 0:\n        return r\n    return -r\n",
        "`own` does more than compute",
    ),
    "a choice by a value": ("own(x[i])", "def own(r):\n    return r if r.sum() > 0 else -r\n", "has no batched form"),
    "a number read back": ("own(x[i])", "def own(r):\n    return r * r.sum().item()\n", "may do anything"),
    "a list of the file": ("own(x[i])", "def own(r):\n    return r * LIMITS[0]\n", "`LIMITS` may change"),
    "a number that the file counts": (
        "own(x[i])",
        "def own(r):\n    return torch.roll(r, 1) * COUNT\n\n\ndef count():\n    global COUNT\n    COUNT += 1\n",
        "`COUNT` may change",
    ),
    "a wrapped function": ("own(x[i])", "@cached\ndef own(r):\n    return r * 2\n", "`own` may do anything"),
    "a generator": ("own(x[i])", "def own(r):\n    yield r\n", "`own` may do anything"),
    "a shape that depends on values": ("torch.nonzero(x[i])", "", "`torch.nonzero` may do anything"),
    "what vmap computes row by row": ("torch.renorm(x[i][None], 2, 0, 1.0)", "", "`torch.renorm` may do anything"),
    "the order of equal elements": ("x[i].sort(stable=True).indices.roll(1)", "", "has no batched form"),
    "a result that is given": ("torch.roll(x[i], 1, out=y[i])", "", "may do anything"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_may_not_be_mapped_stays(name: str) -> None:
    row, own, _ = LEFT[name]
    code = module(STACKED.format(row), own)
    assert fixed(code, *RULES) == code


def test_a_finding_says_what_stands_in_the_way() -> None:
    code = module(
        "rows = []\nfor i in range(n):\n    rows.append(own(x[i].exp()).abs())\nreturn torch.stack(rows)\n",
        LEFT["a change in place"][1],
    )
    assert [finding.no_fix for finding in findings(code, *RULES)] == ["`own` does more than compute"]


CARRIED = {
    "the result of the row before": ("h = x[0]", "h = torch.roll(h, 1) + x[i]", "rows.append(h)"),
    "the row before": ("h = x[0]", "rows.append(scaled(h))", "h = x[i]"),
    "how many rows there were": ("", "rows.append(torch.roll(x[i], len(rows)))"),
    "which row it is": ("", "rows.append(torch.roll(x[i], i))"),
    "what other rows left": ("out = y.clone()", "rows.append(of_both(x[i], out[0]))", "out[i] = x[i]"),
}


@pytest.mark.parametrize("name", CARRIED)
def test_a_row_that_needs_another_is_not_mapped(name: str) -> None:
    before, *body = CARRIED[name]
    lines = [*filter(None, ("rows = []", before)), "for i in range(n):", *(f"    {line}" for line in body)]
    code = module("\n".join([*lines, "return torch.stack(rows)\n"]))
    assert fixed(code, *RULES) == code
