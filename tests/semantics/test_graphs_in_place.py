"""What in-place methods and flags do to the graph of a tensor."""

from __future__ import annotations

import pytest

from tests.semantics.programs import model_of, value_of
from torchlint.semantics.values import Grad


@pytest.mark.parametrize(
    ("change", "grad"),
    [
        ("y.copy_(w)", Grad.CARRIES),
        ("y.copy_(f(x))", Grad.UNKNOWN),
        ("y[0].copy_(w[0])", Grad.CARRIES),
        ("y.index_add_(0, x, w)", Grad.CARRIES),
        ("y.mul_(2)", Grad.DETACHED),
        ("y.requires_grad_()", Grad.CARRIES),
        ("y.requires_grad = True", Grad.CARRIES),
        ("y.requires_grad = flag", Grad.UNKNOWN),
        ("y.grad = w", Grad.DETACHED),
    ],
)
def test_what_is_written_into_a_tensor_gives_it_a_graph(change: str, grad: Grad) -> None:
    body = f"y = torch.zeros(3)\n    w = torch.ones(3, requires_grad=True)\n    {change}\n    out = y"
    model = model_of(f"import torch\nfrom m import f\n\ndef fill(x, flag):\n    {body}\n")
    assert value_of(model, "out", "fill").grad is grad


@pytest.mark.parametrize(
    ("change", "grad"),
    [
        ("y.detach_()", Grad.DETACHED),
        ("y.requires_grad_(False)", Grad.DETACHED),
        ("y.requires_grad = False", Grad.DETACHED),
        ("y.copy_(x)", Grad.CARRIES),
        ("y[0].zero_()", Grad.CARRIES),
    ],
)
def test_a_graph_goes_only_where_it_is_cut(change: str, grad: Grad) -> None:
    model = model_of(f"import torch\n\nx = torch.ones(3)\ny = torch.ones(3, requires_grad=True)\n{change}\nout = y\n")
    assert value_of(model, "out").grad is grad
