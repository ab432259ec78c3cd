"""VEC01: a loop over the rows of a tensor, what it becomes, and the loops that are none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.vec.element_loops import HEAD, REWRITES
from tests.support import findings, fixed
from torchlint.finding import Applicability, Confidence

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")


def found(code: str) -> list[int]:
    """Lines of the findings of any rule about rows, counted behind HEAD."""
    return [finding.line - HEAD.count("\n") for finding in findings(HEAD + code, *ROW_RULES)]


def rewritten(code: str) -> str:
    """By the rule for loops, and the one for comprehensions; an import goes with the last use of its name."""
    return fixed(HEAD + code, "VEC01", "VEC02", "VEC06").partition("\n\n\n")[2]


@pytest.mark.parametrize("name", REWRITES)
def test_a_loop_becomes_one_call(name: str) -> None:
    before, after = REWRITES[name]
    assert rewritten(before) == (before if after is None else after)


def test_line_ends_and_tabs_stay() -> None:
    code = "import torch\r\ndef f(x: torch.Tensor):\r\n\tout = torch.zeros_like(x)\r\n"
    code += "\tfor i in range(len(x)):\r\n\t\ta = x[i] * 2\r\n\t\tout[i] = a\r\n\treturn out\r\n"
    expected = code.replace("\tfor i in range(len(x)):\r\n\t\ta = x[i] * 2\r\n\t\t", "\ta = x * 2\r\n\t")
    assert fixed(code, "VEC01") == expected.replace("out[i] = a", "out[:] = a")


@pytest.mark.parametrize(
    ("made", "done", "applicability"),
    [
        ("x.float()", "y[i] * 2 + 1", Applicability.SAFE),
        ("x.float()", "y[i].square()", Applicability.SAFE),
        ("x.clone()", "y[i] + y[i]", Applicability.SAFE),
        ("x.clone()", "y[i] * y[i]", Applicability.UNSAFE),  # complex ones may be rounded otherwise
        ("x.clone()", "y[i].square()", Applicability.UNSAFE),
    ],
)
def test_exact_arithmetic_into_a_tensor_of_its_own_is_safe(made: str, done: str, applicability: Applicability) -> None:
    code = f"def f(x: torch.Tensor):\n    n, m = x.shape\n    y = {made}\n    out = torch.zeros_like(y)\n"
    (finding,) = findings(f"{HEAD}{code}    for i in range(n):\n        out[i] = {done}\n    return out\n", "VEC01")
    assert finding.fix is not None
    assert finding.fix.applicability is applicability
    assert finding.confidence is Confidence.CERTAIN


def test_a_sum_is_not_safe_and_says_why() -> None:
    (finding,) = findings(HEAD + REWRITES["a list that is stacked"][0], "VEC01")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert "last bits" in finding.fix.why


# Reported, not rewritten, and what the message names.
DOUBTFUL = {
    "an operand of unknown rank": (
        "def f(x: torch.Tensor, w):\n    return torch.stack([x[i] * w for i in range(len(x))])\n",
        "the rank of `x` and of `w` is not known",
    ),
    "a target from elsewhere": (
        "def f(x: torch.Tensor, out: torch.Tensor):\n    n, m = x.shape\n    _, _ = out.shape\n"
        "    for i in range(n):\n        out[i] = x[i].exp()\n",
        "`out` may share memory",
    ),
    "a temporary that is used later": (
        "def f(x: torch.Tensor):\n    out = torch.zeros_like(x)\n    for i in range(len(x)):\n        row = x[i] * 2\n"
        "        out[i] = row\n    return out, row\n",
        "`row` is read after the loop",
    ),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_is_missing_is_said(name: str) -> None:
    code, reason = DOUBTFUL[name]
    (finding,) = findings(HEAD + code, "VEC01", "VEC06")
    assert finding.fix is None
    assert finding.confidence is Confidence.LIKELY
    assert reason in finding.no_fix


LOOK_ALIKES = {
    "a list of tensors": "def f(xs):\n    return torch.stack([x.exp() for x in xs])\n",
    "what a module returns": """\
def f(critic: nn.Module, obs: torch.Tensor, target: torch.Tensor):
    values = critic(obs)
    return sum(F.mse_loss(value, target) for value in values)
""",
    "samples of a batch": "def collate(batch):\n    return torch.stack([item['x'] * 2 for item in batch])\n",
    "an array": """\
import numpy as np
a = np.random.randn(32, 8)
out = torch.zeros(32)
for i in range(32):
    out[i] = a[i].sum()
""",
    "rows put side by side": "x = torch.randn(32, 8, 8)\nimage = torch.cat([row for row in x], -1)\n",
    "layers": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(9)])

    def forward(self, x: torch.Tensor):
        return torch.stack([layer(x) for layer in self.layers])
""",
    "parameters": "def f(model: nn.Module):\n    return sum(p.norm() for p in model.parameters())\n",
    "a loader": """\
def f(loader, device):
    total = 0
    for x, y in loader:
        total += (x.to(device) - y.to(device)).abs().sum()
    return total
""",
    "discounted returns": """\
def f(rewards: torch.Tensor, gamma: float):
    returns = torch.zeros_like(rewards)
    running = 0.0
    for t in range(len(rewards)):
        running = rewards[t] + gamma * running
        returns[t] = running
    return returns
""",
    "truncated steps": "x = torch.randn(64, 8)\nout = torch.cat([x[i : i + 16].exp() for i in range(0, 64, 16)])\n",
    "ragged rows": """\
def f(x: torch.Tensor, lengths: list[int]):
    return torch.stack([x[i, : lengths[i]].std() for i in range(len(x))])
""",
    "noise for each row": "x = torch.randn(64, 8)\nout = torch.stack([row + torch.randn_like(row) for row in x])\n",
    "a distribution": """\
def f(x: torch.Tensor):
    return torch.stack([torch.distributions.Normal(row, 1.0).sample() for row in x])
""",
    "a few rows": "x = torch.randn(3, 8)\nout = torch.stack([x[i].exp() for i in range(3)])\n",
    "an early stop": """\
def f(x: torch.Tensor):
    out = torch.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i].sum()
        if out[i] < 0:
            break
    return out
""",
    "a dictionary": "def f(d):\n    out = torch.zeros(9)\n    for i, k in enumerate(d):\n        out[i] = d[k].sum()\n",
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_not_reported(name: str) -> None:
    assert found(LOOK_ALIKES[name]) == []


def test_tests_may_compute_what_they_expect_row_by_row() -> None:
    code = HEAD + REWRITES["an index fill"][0] + "def test_f():\n    assert f\n"
    assert findings(code, "VEC01", path="tests/test_scale.py") == []
    assert len(findings(code, "VEC01", path="scale.py")) == 1


LISTS = {
    "a list of features": """\
def f(features):
    total = 0
    for i in range(len(features)):
        total = total + features[i].abs().sum()
    return total
""",
    "two lists of features": """\
def f(student, teacher):
    loss = 0
    for i in range(len(student)):
        loss += F.l1_loss(student[i], teacher[i].detach())
    return loss
""",
    "means of a list": """\
def f(maps):
    total = 0
    for i in range(len(maps)):
        total += torch.exp(maps[i]).mean()
    return total
""",
}


@pytest.mark.parametrize("name", LISTS)
def test_what_may_be_a_list_of_tensors_is_left_alone(name: str) -> None:
    assert found(LISTS[name]) == []


@pytest.mark.parametrize(
    ("made", "is_fixed"),
    [("torch.zeros(n)", False), ("torch.zeros(n, device=x.device)", True), ("torch.zeros_like(x)", True)],
)
def test_elements_of_the_host_are_not_picked_by_what_may_be_on_a_gpu(made: str, is_fixed: bool) -> None:
    """One by one, numbers come from any device; a mask has to be where the elements are, or on the host."""
    code = f"{HEAD}def f(x: torch.Tensor):\n    n, = x.shape\n    out = {made}\n"
    code += "    for i in range(n):\n        if x[i] > 0.5:\n            out[i] = 1\n    return out\n"
    assert (fixed(code, "VEC01") != code) is is_fixed


def is_only_shown(code: str, rule: str) -> bool:
    (finding,) = findings(code, rule)
    return finding.fix is not None and finding.fix.applicability is Applicability.DISPLAY


def test_dimensions_that_go_to_and_fro_are_only_shown() -> None:
    code = f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor):\n    loss = nn.MSELoss()\n"
    code += "    out = torch.zeros([x.shape[0]])\n    for j in range(x.shape[0]):\n"
    code += "        out[j] = loss(x[j, :, :], y[j, :, :]).item()\n    return out.mean()\n"
    assert is_only_shown(code, "VEC02")
    assert fixed(code.replace("loss(x[j, :, :], y[j, :, :]).item()", "x[j].sum()"), "VEC01", "VEC02") != code


def test_rows_that_are_moved_and_made_flat_are_only_shown() -> None:
    code = f"{HEAD}def f(points: torch.Tensor, images: torch.Tensor):\n"
    code += "    out = torch.zeros(images.shape[0], images.shape[1], 4)\n    for n in range(points.shape[-2]):\n"
    code += "        out[..., n, 0] = points[..., n, 0] - 2\n    return out\n"
    assert is_only_shown(code, "VEC01")


@pytest.mark.parametrize(("beside", "is_fixed"), [("sum(abs(x))", False), ("x.mean()", True)])
def test_a_sum_is_not_rewritten_beside_another(beside: str, is_fixed: bool) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor):\n    n, m = y.shape\n    y = y.exp()\n"
    code += f"    return sum(y**2) / {beside}\n"
    assert (fixed(code, "VEC01", "VEC02", "VEC06") != code) is is_fixed


def test_sums_of_sums_are_rewritten_together() -> None:
    code = "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    n, m = y.shape\n"
    code += "    return sum(sum(x == y)) / n\n"
    after = fixed(code, "VEC01", unsafe=True)
    assert after == code.replace("sum(sum(x == y))", "(x == y).sum(0).sum(0)")
    shares = []
    for text in (code, after):
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        shares.append(namespace["f"](torch.arange(6).view(2, 3), torch.tensor([[0, 1, 1], [3, 3, 5]])))
    assert torch.equal(*shares)


def test_a_count_over_rows_of_unknown_rank_needs_no_flat_rows() -> None:
    code = "import torch\n\ndef count(loader):\n    circles = 0\n    for image, labels in loader:\n"
    code += (
        "        for i in range(labels.shape[0]):\n            if labels[i][0] == 1:\n                circles += 1\n"
    )
    code += "    return circles\n"
    after = fixed(code, "VEC01", unsafe=True)
    assert "        circles += int((labels[:, 0] == 1).sum())\n" in after
    counts = []
    for text in (code, after):
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        counts.append(namespace["count"]([(None, torch.tensor([[1, 0], [0, 1], [1, 1]])), (None, torch.ones(0, 2))]))
    assert counts == [2, 2]


@pytest.mark.parametrize(
    "read", ["n = lengths[i]\n        out[i] = x[i, :n].sum()", "out[i] = x[i, : lengths[i]].sum()"]
)
def test_a_loop_is_about_the_tensor_that_is_cut_and_not_about_where(read: str) -> None:
    code = f"{HEAD}def f(x: torch.Tensor, lengths: torch.Tensor):\n    out = torch.zeros(len(x))\n"
    code += f"    for i in range(len(x)):\n        {read}\n    return out\n"
    (finding,) = findings(code, "VEC01")
    assert "the rows of `x` one by one" in finding.message


def test_neighbours_of_one_tensor_need_no_cut() -> None:
    code = "import torch\n\ndef f(x: torch.Tensor):\n    n, m = x.shape\n"
    code += "    return torch.stack([new - old for new, old in zip(x[1:], x[:-1])])\n"
    after = fixed(code, "VEC", unsafe=True)
    assert after.endswith("    return x[1:] - x[:-1]\n")
    results = []
    for text in (code, after):
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        results.append(namespace["f"](torch.arange(6.0).view(3, 2) ** 2))
    assert torch.equal(*results)
    other = code.replace("x[:-1]", "x[:-2]")
    assert fixed(other, "VEC", unsafe=True).endswith("    return x[1:][: len(x[:-2])] - x[:-2][: len(x[1:])]\n")
