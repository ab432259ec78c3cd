"""The loop vectoriser on rows that a module of torch.nn takes, on results taken apart, and on sizes of a row."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest
import torch

from tests.fixers import loops as kinds
from tests.fixers.generated import CASES, RULES, disagreement
from tests.fixers.loop_parts import FLOATS
from tests.fixers.test_vectorizer_agreement import SHAPES, module
from tests.support import fixed

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)
        self.head = {made}

    def forward(self, x: torch.Tensor):
        h, _ = self.rnn(x)
        steps = []
        for t in range(h.size(1)):
            steps.append(self.head({row}))
        return torch.stack(steps, dim=1)
"""
BATCHED = {
    "nn.Linear(4, 2)": "self.head(h)",
    "nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))": "self.head(h)",
    "nn.LayerNorm(4)": "self.head(h)",
    "nn.LeakyReLU(0.2)": "self.head(h)",
    "nn.Tanh()": "",
}


@pytest.mark.parametrize("made", BATCHED)
@pytest.mark.parametrize("steps", [5, 1])
def test_a_layer_along_the_last_dimension_takes_all_steps(made: str, steps: int) -> None:
    code = NET.format(made=made, row="h[:, t, :]")
    new = fixed(code, *RULES)
    assert "for " not in new
    assert BATCHED[made] in new, new
    results = []
    for text in (code, new):
        names: dict[str, Any] = {}
        exec(text, names)
        torch.manual_seed(3)
        x = torch.randn(2, steps, 3, requires_grad=True)
        net = names["Net"]()
        out = net(x)
        out.square().sum().backward()
        results.append((out.detach(), x.grad, [p.grad for p in net.parameters()]))
    (out, grad, parameters), (other, other_grad, others) = results
    assert torch.allclose(out, other, atol=1e-6)
    assert torch.allclose(grad, other_grad, atol=1e-5)
    assert all(torch.allclose(one, two, atol=1e-4) for one, two in zip(parameters, others) if one is not None)


@pytest.mark.parametrize(
    "made",
    [
        "nn.Sequential(nn.Linear(4, 4), nn.Dropout())",  # draws numbers for each step
        "nn.BatchNorm1d(4)",  # takes the statistics of one step
        "nn.ReLU(inplace=True)",
        "nn.Bilinear(4, 4, 2)",
        "nn.utils.spectral_norm(nn.Linear(4, 2))",  # changes with every call
        "nn.Sequential(*layers())",
        "nn.Softmax()",
        "nn.GRUCell(4, 4)",
        "Head()",
    ],
)
def test_another_module_keeps_its_loop(made: str) -> None:
    code = NET.format(made=made, row="h[:, t, :]")
    assert fixed(code, *RULES) == code


@pytest.mark.parametrize(
    "line",
    [
        "self.head.append(nn.Softmax(0))",
        "self.head.add_module('last', nn.Softmax(0))",
        "self.head.last = nn.Softmax(0)",
        "self.head[1] = nn.Softmax(0)",
        "setattr(self, 'head', nn.Softmax(0))",
        "self.head[0].register_forward_hook(print)",
        "nn.utils.parametrizations.spectral_norm(self.head[0])",
    ],
)
def test_a_module_that_is_altered_later_keeps_its_loop(line: str) -> None:
    made = f"nn.Sequential(nn.Linear(4, 2), nn.Tanh())\n        {line}"
    code = NET.format(made=made, row="h[:, t, :]")
    assert fixed(code, *RULES) == code


def test_a_module_that_another_object_is_given_in_its_place_keeps_its_loop() -> None:
    code = NET.format(made="nn.Linear(4, 2)", row="h[:, t, :]")
    altered = f"{code}\n\nnet = Net()\nnet.head = nn.Softmax(0)\n"
    assert fixed(altered, *RULES) == altered
    parameters = f"{code}\n\nnet = Net()\nnet.head.weight.data[0] = 1\nnet.head.bias.requires_grad = False\n"
    assert "self.head(h)" in fixed(parameters, *RULES)


def test_the_axis_stays_in_front_where_it_may_be_the_last() -> None:
    code = NET.format(made="nn.Linear(4, 2)", row="h[:, t]").replace("h, _ = self.rnn(x)", "h = x.relu()")
    assert "self.head(h.movedim(1, 0)).movedim(0, 1)" in fixed(code, *RULES)


FORMS = {
    "values and places": ("most, at = x[i].max(0)", "out[i] = most + at"),
    "sorted": ("ordered, _ = x[i].sort()", "out[i] = ordered[0] * 2"),
    "singular values": ("a, b, c = torch.svd(v[i])", "out[i] = b.sum()"),
    "eigenvalues": ("e, _ = torch.linalg.eigh(v[i] @ v[i].mT)", "out[i] = e.sum()"),
    "a factor": ("a, b = torch.linalg.qr(v[i])", "out[i] = (a @ b).sum()"),
    "two rows": ("a, b = x[i], y[i]", "out[i] = (a * b).sum()"),
    "the shape of a row": ("h, w = v[i].shape", "out[i] = v[i].sum() / (h * w + 1)"),
    "the length of a row": ("row = v[i]", "out[i] = row.sum() / (len(row) + row.size(-1) ** 2)"),
}


def loop_of(*lines: str) -> str:
    return "out = torch.zeros(n, dtype=x.dtype)\nfor i in range(n):\n" + indent("\n".join(lines), "    ") + "\n"


@pytest.mark.parametrize("name", FORMS)
def test_a_result_that_is_taken_apart_is_one_for_all_rows(name: str) -> None:
    loop = kinds.Generated(module(loop_of(*FORMS[name])), SHAPES)
    new = fixed(loop.code, *RULES)
    assert "for " not in new.split("def f")[1], new
    cases = [case for case in CASES[FLOATS] if case.dtype is torch.float64 and case.other is None]
    assert disagreement(loop, new, cases) is None


@pytest.mark.parametrize(
    "lines",
    [
        ("a, b = b, x[i]", "out[i] = a.sum()"),
        ("(a, b), c = x[i].max(0), y[i]", "out[i] = a + c.sum()"),
        ("a, b = x[i]", "out[i] = a + b"),
    ],
)
def test_what_is_taken_apart_otherwise_keeps_its_loop(lines: tuple[str, ...]) -> None:
    code = module("a = b = x[0]\n" + loop_of(*lines))
    assert fixed(code, *RULES) == code


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_extreme_of_a_tensor_is_asked_of_it(name: str) -> None:
    body = f"out = {name}(s * 2)\nif {name}(y.sum(1)) > 0:\n    out = out + 1\n"
    code = module(body)
    new = fixed(code, *RULES)
    assert f"(s * 2).{name}()" in new
    assert f"y.sum(1).{name}() > 0" in new
    filled = [case for case in CASES[FLOATS] if not case.is_empty]
    assert disagreement(kinds.Generated(code, SHAPES), new, filled) is None


def test_the_extreme_of_rows_stays() -> None:
    code = module("out = max(x[:, :1] * 2)\n")
    assert fixed(code, *RULES) == code


TOGETHER = {
    "several rows in line": ("rows = []", "rows.append(torch.cat((x[i], y[i])))", "torch.cat((x, y[: len(x)]), dim=1)"),
    "several rows on rows": ("rows = []", "rows.append(torch.stack([x[i], y[i]], dim=-1))", "dim=-1)"),
    "a function": ("soft = torch.nn.Softmax(dim=0)", "rows.append(soft(v[i]))", "torch.softmax(v[: len(x)], dim=-2)"),
    "logarithms": ("soft = torch.nn.LogSoftmax(-1)", "rows.append(soft(v[i]))", "torch.log_softmax("),
}  # fmt: skip


@pytest.mark.parametrize("name", TOGETHER)
def test_what_takes_a_dimension_takes_the_next_one(name: str) -> None:
    made, line, held = TOGETHER[name]
    code = module(f"rows = []\n{made}\nfor i in range(len(x)):\n    {line}\nout = torch.stack(rows)\n")
    new = fixed(code, *RULES)
    assert held in new, new
    assert disagreement(kinds.Generated(code, SHAPES), new, CASES[FLOATS]) is None


@pytest.mark.parametrize("along", ["unbind(dim=1)", "unbind(1)", "unbind(-1)", "unbind()"])
def test_what_is_taken_apart_along_a_dimension_has_it_in_front(along: str) -> None:
    code = module(f"out = torch.stack([a.exp() for a in x.{along}])\n")
    new = fixed(code, *RULES)
    assert "for " not in new.split("def f")[1]
    assert disagreement(kinds.Generated(code, SHAPES), new, CASES[FLOATS]) is None


ADDED = """\
out = torch.zeros_like({like})
for i in range(n):
    out[i].index_add_(0, {places}[i].long(), {added}[i])
"""


@pytest.mark.parametrize(("like", "added"), [("x", "y"), ("v.mT", "v.mT")])
def test_what_is_added_at_places_of_each_row_adds_up(like: str, added: str) -> None:
    code = module(
        f"at = x.abs() * 7 % p\nadded = {added}.detach()\n" + ADDED.format(like=like, places="at", added="added")
    )
    new = fixed(code, *RULES)
    assert "index_put_(" in new, new
    cases = [case for case in CASES[FLOATS] if case.other is None]
    assert disagreement(kinds.Generated(code, SHAPES), new, cases) is None


@pytest.mark.parametrize(
    "line", ["out[i].index_add_(1, at[i], v[i])", "out[0].index_add_(0, at[i], x[i])", "x[i].add_(1)"]
)
def test_what_is_added_elsewhere_keeps_its_loop(line: str) -> None:
    code = module(f"at = (x.abs() * 7 % p).long()\nout = torch.zeros_like(x)\nfor i in range(n):\n    {line}\n")
    assert fixed(code, *RULES) == code


GATHERED = {
    "rows and places": "x[i].gather(0, at[i])",
    "rows at the same places": "torch.gather(x[i], 0, at[0])",
    "the same at places of each row": "torch.gather(s, dim=-1, index=at[i])",
    "matrices": "v[i].gather(1, at[i].expand(q, p))",
}


@pytest.mark.parametrize("name", GATHERED)
def test_what_is_gathered_along_a_dimension_is_along_the_next_one(name: str) -> None:
    head = "at = (x.abs() * 100).long() % min(n, p)\nhere = at[0]\n"
    line = GATHERED[name].replace("at[0]", "here")
    code = module(f"{head}out = torch.stack([{line} for i in range(n)])\n")
    new = fixed(code, *RULES)
    assert "for " not in new.split("def f")[1], new
    cases = [case for case in CASES[FLOATS] if not case.is_empty]
    assert disagreement(kinds.Generated(code, SHAPES), new, cases) is None
