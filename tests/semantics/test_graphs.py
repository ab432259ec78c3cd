"""Where gradients are on, and which values carry a graph."""

from __future__ import annotations

import pytest

from tests.semantics.programs import binding_of, model_of, value_of
from torchlint.semantics.values import Grad


def test_gradients_are_off_where_every_caller_turned_them_off() -> None:
    model = model_of(
        """
        import torch
        def score(net, x):
            y = net(x)
            return y
        with torch.no_grad():
            score(net, x)
        """
    )
    assert value_of(model, "y", "score").grad is Grad.DETACHED
    assert model.grad_enabled(binding_of(model, "y", "score").writes[0].target) is False


@pytest.mark.parametrize(
    ("decorator", "enabled"),
    [("@torch.no_grad()", False), ("@functools.lru_cache", True), ("@smart_inference_mode()", None)],
)
def test_a_decorator_of_the_users_own_may_switch_gradients(decorator: str, enabled: bool | None) -> None:
    model = model_of(f"import functools, torch\n{decorator}\ndef score(net, x):\n    y = net(x)\n    return y\n")
    assert model.grad_enabled(binding_of(model, "y", "score").writes[0].target) is enabled


def test_gradients_are_on_where_one_caller_leaves_them_on() -> None:
    model = model_of(
        """
        import torch
        def score(net, x):
            y = net(x)
            return y
        with torch.no_grad():
            score(net, x)
        score(net, x)
        """
    )
    assert model.grad_enabled(binding_of(model, "y", "score").writes[0].target) is True


@pytest.mark.parametrize(
    ("body", "graph"),
    [
        ("loss = f(x)\n    loss.backward()", Grad.CARRIES),
        ("loss = f(x)\n    loss.backward()\n    loss = g(loss)", Grad.UNKNOWN),
        ("loss.backward()\n    loss = g(x)", Grad.CARRIES),
        ("if x:\n        loss = f(x)\n    loss.backward()\n    loss = g(loss)", Grad.CARRIES),
    ],
    ids=["before its pass", "behind its pass", "for the next iteration", "for the next iteration, perhaps"],
)
def test_a_backward_pass_proves_nothing_of_what_its_variable_holds_later(body: str, graph: Grad) -> None:
    model = model_of(
        f"import torch\nfrom somewhere import f, g, loss, data\n\ndef run(loss):\n  for x in data:\n    {body}\n"
    )
    assert value_of(model, "loss", "run").grad is graph


@pytest.mark.parametrize(
    ("item", "grad"),
    [
        ("f(x)", Grad.UNKNOWN),
        ("w * x", Grad.CARRIES),
        ("x.item()", Grad.DETACHED),
        ("torch.ones(3)", Grad.DETACHED),
    ],
)
def test_a_tensor_that_is_filled_has_the_graph_of_what_goes_in(item: str, grad: Grad) -> None:
    body = f"rows = torch.zeros(3, 3)\n    w = torch.ones(3, requires_grad=True)\n    rows[0] = {item}"
    model = model_of(f"import torch\nfrom m import f\n\ndef fill(x):\n    {body}\n    out = rows\n")
    assert value_of(model, "out", "fill").grad is grad


@pytest.mark.parametrize(("read", "grad"), [("", Grad.CARRIES), (".data", Grad.DETACHED)])
def test_parameters_that_are_put_together_carry_a_graph(read: str, grad: Grad) -> None:
    model = model_of(
        f"""
        import torch
        from torch.nn.utils import parameters_to_vector
        net = torch.nn.Linear(3, 3)
        vector = parameters_to_vector(net.parameters()){read}
        """
    )
    assert value_of(model, "vector").grad is grad


@pytest.mark.parametrize(
    ("made", "grad"),
    [
        ("torch.zeros(3, 4).scatter_(1, y, 1.0)", Grad.DETACHED),
        ("torch.zeros(3, 4).scatter_(1, index=y, value=1.0)", Grad.DETACHED),
        ("torch.zeros(3, 4).scatter_(1, y, y)", Grad.UNKNOWN),
        ("torch.gather(torch.zeros(3, 4), 1, y)", Grad.DETACHED),
        ("torch.zeros(3, 4).add(y)", Grad.UNKNOWN),
        ("torch.from_numpy(y.permute(1, 0))", Grad.DETACHED),
    ],
)
def test_places_and_arrays_have_no_graph(made: str, grad: Grad) -> None:
    model = model_of(f"import torch\ndef f(y):\n    a = {made}\n    return a\n")
    assert value_of(model, "a", "f").grad is grad


@pytest.mark.parametrize(
    ("made", "graph"),
    [
        ("x.view(options.count, -1)", Grad.DETACHED),
        ("x.permute(0, options.first, options.second)", Grad.DETACHED),
        ("x.repeat(options.count)", Grad.DETACHED),
        ("x.sum(dim=options.first)", Grad.DETACHED),
        ("torch.flatten(x, options.first)", Grad.DETACHED),
        ("x.max(options.first)", Grad.UNKNOWN),
        ("x.add(options.other)", Grad.UNKNOWN),
        ("torch.mm(x, options.other)", Grad.UNKNOWN),
    ],
)
def test_sizes_and_dimensions_bring_no_graph(made: str, graph: Grad) -> None:
    model = model_of(f"import torch\ndef f(options):\n    x = torch.zeros(4, 2)\n    y = {made}\n    return y\n")
    assert value_of(model, "y", "f").grad is graph


@pytest.mark.parametrize(
    ("body", "graph"),
    [
        ("loss = torch.ones(3).mean()\n    loss.backward()", Grad.CARRIES),
        ("loss = torch.ones(3).mean()\n    loss.item()", Grad.DETACHED),
        ("loss = torch.ones(1)\n    if x:\n        loss = f(x)\n    loss.backward()", Grad.CARRIES),
        ("with torch.no_grad():\n        loss = torch.ones(3).mean()\n    loss.backward()", Grad.DETACHED),
    ],
    ids=["goes backward", "does not", "perhaps something else", "made without gradients"],
)
def test_what_goes_backward_has_a_graph_whatever_is_known_of_it(body: str, graph: Grad) -> None:
    model = model_of(f"import torch\nfrom m import f\n\ndef run(x):\n    {body}\n    read = loss\n")
    assert value_of(model, "read", "run").grad is graph
