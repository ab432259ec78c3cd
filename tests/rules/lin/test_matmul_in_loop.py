"""LIN01: products of vectors and matrices one by one, what they become, and the loops that must stay."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed
from torchlint.finding import Applicability

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"

# Names of tensors and their shapes, a loop, and what it becomes.
PRODUCTS = {
    "matrices": ("A (64, 3, 4) B (64, 4, 5)", "torch.stack([A[i] @ B[i] for i in range(64)])", "A @ B"),
    "matrices by mm": ("A (64, 3, 4) B (64, 4, 5)", "torch.stack([torch.mm(A[i], B[i]) for i in range(64)])", "A @ B"),
    "a shared right operand": ("x (64, 4) W (4, 5)", "torch.stack([x[i] @ W for i in range(64)])", "x @ W"),
    "a shared left operand": ("x (64, 4) W (5, 4)", "torch.stack([W @ x[i] for i in range(64)])", "x @ W.mT"),
    "matrices and vectors": (
        "H (64, 3, 4) s (64, 4)",
        "torch.stack([H[k] @ s[k] for k in range(64)])",
        "(H @ s.unsqueeze(-1)).squeeze(-1)",
    ),
    "vectors and matrices": (
        "H (64, 3, 4) s (64, 3)",
        "torch.stack([s[k] @ H[k] for k in range(64)])",
        "(s.unsqueeze(-2) @ H).squeeze(-2)",
    ),
    "vectors": ("a (64, 4) b (64, 4)", "torch.stack([a[i].dot(b[i]) for i in range(64)])", "(a * b).sum(-1)"),
    "outer products": (
        "a (64, 4) b (64, 4)",
        "torch.stack([torch.outer(a[i], b[i]) for i in range(64)])",
        "a.unsqueeze(-1) * b.unsqueeze(-2)",
    ),
    "gram matrices": ("A (64, 3, 4)", "torch.stack([A[i] @ A[i].t() for i in range(64)])", "A @ A.mT"),
    "a quadratic form": (
        "v (64, 4) R (64, 4, 4)",
        "torch.stack([v[i] @ R[i] @ v[i] for i in range(64)])",
        "((v.unsqueeze(-2) @ R).squeeze(-2) * v).sum(-1)",
    ),
    "einsum": (
        "A (64, 3, 4) B (64, 4, 5)",
        'torch.stack([torch.einsum("ij,jk->ik", A[i], B[i]) for i in range(64)])',
        'torch.einsum("aij, ajk -> aik", A, B)',
    ),
    "linear": (
        "x (64, 3, 4) W (5, 4) b (5,)",
        "torch.stack([F.linear(x[i], W, b) for i in range(64)])",
        "F.linear(x, W, b)",
    ),
    "with arithmetic around": (
        "A (64, 3, 4) B (64, 4, 5)",
        "torch.stack([2 * (A[i] @ B[i]) + 1 for i in range(64)])",
        "2 * (A @ B) + 1",
    ),
}


def made(tensors: str) -> str:
    parts = tensors.replace(") ", ")|").split("|")
    return "".join(f"{name} = torch.randn{shape}\n" for name, shape in (part.split(" ", 1) for part in parts))


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_one_by_one_become_one_product(name: str) -> None:
    tensors, loop, product = PRODUCTS[name]
    code = HEAD + made(tensors)
    (finding,) = findings(code + f"out = {loop}\n", "LIN01")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert fixed(code + f"out = {loop}\n", "LIN01") == code + f"out = {product}\n"


def test_two_loops_over_subcarriers_and_antennas() -> None:
    code = HEAD + made("H (6, 3, 4, 16) X (6, 4, 16)") + "Y = torch.zeros(6, 3, 16)\n"
    loop = "for b in range(6):\n    for k in range(16):\n        Y[b, :, k] = H[b, :, :, k] @ X[b, :, k]\n"
    product = "(H.movedim(3, 1) @ X.movedim(2, 1).unsqueeze(-1)).squeeze(-1).movedim(1, 2)"
    assert fixed(code + loop, "LIN01") == code + f"Y[:] = {product}\n"


def test_a_sum_of_outer_products() -> None:
    code = HEAD + made("x (32, 4)") + "R = torch.zeros(4, 4)\n"
    loop = "for t in range(32):\n    R += x[t].unsqueeze(1) @ x[t].unsqueeze(0)\n"
    assert fixed(code + loop, "LIN01") == code + "R += (x.unsqueeze(2) @ x.unsqueeze(1)).sum(0)\n"


def test_ranks_that_are_not_known_are_left_to_vmap() -> None:
    code = (
        HEAD
        + "def f(H: torch.Tensor, s: torch.Tensor):\n    return torch.stack([H[k] @ s[k] for k in range(len(H))])\n"
    )
    (finding,) = findings(code, "LIN01")
    assert finding.fix is not None
    assert finding.fix.edits[0].text == "torch.vmap(lambda H_k, s_k: H_k @ s_k)(H, s[: len(H)])"
    assert finding.fix.applicability is Applicability.DISPLAY


def test_ranks_are_learned_from_what_takes_no_others() -> None:
    code = HEAD + "def f(H: torch.Tensor, s: torch.Tensor):\n    return torch.stack([{} for k in range(len(H))])\n"
    assert "return (H @ s[: len(H)].unsqueeze(-1)).squeeze(-1)\n" in fixed(code.format("torch.mv(H[k], s[k])"), "LIN01")


def test_a_list_that_gives_its_name_to_the_tensor() -> None:
    code = HEAD + made("A (64, 3, 4) B (64, 4, 5)")
    loop = "out = []\nfor i in range(64):\n    out.append(A[i] @ B[i])\nout = torch.stack(out)\nprint(len(out))\n"
    assert fixed(code + loop, "LIN01") == code + "out = A @ B\nprint(len(out))\n"


KEPT = {
    "a power iteration": "v = torch.randn(4)\nW = torch.randn(4, 4)\nfor _ in range(64):\n    v = W @ v\n",
    "a product of matrices": "P = torch.eye(4)\nA = torch.randn(64, 4, 4)\nfor i in range(64):\n    P = P @ A[i]\n",
    "a scan": """\
A = torch.randn(64, 4, 4)
out = torch.zeros(64, 4)
for i in range(1, 64):
    out[i] = A[i] @ out[i - 1]
""",
    "matrices of several shapes": "def f(xs, W: torch.Tensor):\n    return torch.cat([x @ W for x in xs])\n",
    "heads": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ParameterList([nn.Parameter(torch.randn(4, 4)) for _ in range(9)])

    def forward(self, x: torch.Tensor):
        return torch.stack([x @ self.heads[i] for i in range(9)])
""",
    "a filter over time": """\
def f(F_: torch.Tensor, H: torch.Tensor, y: torch.Tensor, x: torch.Tensor):
    states = []
    for t in range(len(y)):
        x = F_ @ x + H @ y[t]
        states.append(x)
    return torch.stack(states)
""",
    "blocks for memory": """\
def f(x: torch.Tensor, W):
    return torch.cat([x[i : i + 64] @ W for i in range(0, 640, 64)])
""",
    "arrays": "import numpy as np\nA = np.zeros((64, 4, 4))\nout = np.stack([A[i] @ A[i] for i in range(64)])\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_depends_on_the_iteration_before_is_left_alone(name: str) -> None:
    assert findings(HEAD + KEPT[name], "VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03") == []


def test_the_rows_that_are_multiplied_are_named_and_not_those_that_say_where() -> None:
    code = """\
import torch

def resize(img: torch.Tensor, weights: torch.Tensor, places: torch.Tensor):
    out = torch.zeros(places.size(0), img.size(1))
    for i in range(places.size(0)):
        start = int(places[i][0])
        out[i] = img[start : start + 4].t().mv(weights[i])
    return out
"""
    (finding,) = findings(code, "LIN01")
    assert finding.message.startswith("This loop multiplies the rows of `weights` one by one.")
    assert finding.chain[0].message == "each iteration takes one row of `weights`"
