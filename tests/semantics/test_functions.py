"""Functions: arguments, defaults, partial application, callbacks, dispatch, recursion."""

from __future__ import annotations

import pytest

from tests.semantics.programs import call_on, function_of, model_of, value_of
from torchlint.semantics.entities import ArgumentState, Role
from torchlint.semantics.values import UNKNOWN, Grad, Kind, Place

STEPS = """
    import torch
    from functools import partial
    from torch import nn
    from torch.utils.data import DataLoader

    net = nn.Linear(3, 1).to("cuda")
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(dataset)

    def train_step(net, x):
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        opt.step()
        return loss

    def eval_step(net, x):
        return net(x).sum().item()

    def run_epoch(step):
        for x in loader:
            out = step(net, x.cuda())
"""


def test_functools_partial_calls_the_function_with_the_arguments_it_holds() -> None:
    model = model_of(STEPS + "    step = partial(train_step, net)\n    loss = step(x=torch.ones(3))\n")
    assert value_of(model, "loss").carries
    assert function_of(model, "train_step").parameter("net").kind is Kind.MODULE
    assert call_on(model, "step(x=torch.ones(3))").target is function_of(model, "train_step")


def test_arguments_that_functools_partial_holds_are_given() -> None:
    model = model_of(
        """
        from functools import partial
        from torch.utils.data import DataLoader
        make = partial(DataLoader, dataset, num_workers=4)
        loader = make(batch_size=8)
        shuffled = make(8, True)
        """
    )
    call = call_on(model, "make(batch_size=8)")
    assert call.callee == "torch.utils.data.DataLoader"
    assert call.argument("num_workers", 5).value.constant == 4
    assert call.argument("batch_size", 1).value.constant == 8
    assert call.argument("pin_memory").absent
    assert call_on(model, "make(8, True)").argument("shuffle", 2).value.constant is True


def test_arguments_of_one_of_two_partials_are_hidden() -> None:
    model = model_of(
        """
        from functools import partial
        from torch.utils.data import DataLoader
        make = partial(DataLoader, num_workers=4) if fast else partial(DataLoader, num_workers=0)
        loader = make(dataset)
        """
    )
    assert call_on(model, "make(dataset)").argument("num_workers").state is ArgumentState.HIDDEN


def test_a_callback_runs_where_it_is_called() -> None:
    model = model_of(STEPS + "    for epoch in range(3):\n        run_epoch(train_step)\n")
    assert [loop.role for loop in model.loops] == [Role.STEPS, Role.EPOCHS]
    assert value_of(model, "out", "run_epoch").carries


def test_what_a_starred_argument_holds_counts_for_the_result() -> None:
    model = model_of(
        """
        import torch
        net = torch.nn.Linear(2, 2)
        parts = [net(x) for x in loader]
        low = torch.min(*parts)
        high = torch.max(*pair)
        """
    )
    assert value_of(model, "low").carries
    assert value_of(model, "high").grad is Grad.UNKNOWN


def test_a_callback_handed_to_code_out_of_sight_may_run_at_once() -> None:
    model = model_of(STEPS + "    for x in loader:\n        library.call(train_step, net, x)\n")
    assert model.loops[-1].role is Role.STEPS


def test_one_of_several_functions_is_called() -> None:
    model = model_of(STEPS + "    step = train_step if training else eval_step\n    out = step(net, x)\n")
    call = call_on(model, "step(net, x)")
    assert call.target is None
    assert [function.name for function in call.alternatives] == ["train_step", "eval_step"]
    assert value_of(model, "out").optional  # the loss, or a number
    assert model.effects(call).has("backward")


@pytest.mark.parametrize("source", ["{'train': train_step, 'eval': eval_step}[phase]", "STEPS[phase]"])
def test_dispatch_by_a_dict_calls_one_of_its_functions(source: str) -> None:
    model = model_of(STEPS + f"    STEPS = {{'train': train_step, 'eval': eval_step}}\n    out = {source}(net, x)\n")
    assert len(call_on(model, f"{source}(net, x)").alternatives) == 2


def test_dispatch_by_a_known_key_calls_that_function() -> None:
    model = model_of(STEPS + "    out = {'train': train_step, 'eval': eval_step}['train'](net, x)\n")
    assert value_of(model, "out").carries


def test_a_function_of_the_file_or_one_from_elsewhere_may_return_anything() -> None:
    model = model_of("import library\n" + "def f(x):\n    return 1\n" + "g = f if a else library.g\ny = g(x)\n")
    assert value_of(model, "y") == UNKNOWN


def test_a_method_that_is_handed_over_keeps_its_object() -> None:
    model = model_of(
        """
        import torch
        class Trainer:
            def step(self, x):
                y = x.sum()
            def run(self, fn, x):
                fn(x)
            def fit(self):
                self.run(self.step, torch.ones(3, 4))
        """
    )
    assert function_of(model, "Trainer.step").parameter("x").rank == 2


def test_a_default_is_what_a_caller_that_leaves_the_argument_out_passes() -> None:
    model = model_of(
        """
        import torch
        from torch import nn
        def run(x, device="cuda", criterion=nn.MSELoss(), count=3):
            y = x.to(device)
            loss = criterion(y, y)
            return loss
        run(torch.ones(3))
        """
    )
    assert value_of(model, "y", "run").place is Place.ACCELERATOR
    assert value_of(model, "loss", "run").rank == 0
    assert function_of(model, "run").parameter("count").constant is None


def test_a_default_proves_nothing_where_the_callers_are_out_of_sight() -> None:
    model = model_of(
        """
        import torch
        def run(x, mode="train", device="cpu", target="cuda:0"):
            y = torch.zeros(3, device=device)
            z = torch.zeros(3, device=target)
        """
    )
    assert function_of(model, "run").parameter("mode") == UNKNOWN
    assert value_of(model, "y", "run").place is not Place.HOST
    assert value_of(model, "z", "run").place is Place.ACCELERATOR


def test_star_arguments_are_passed_through() -> None:
    model = model_of(
        """
        import torch
        def inner(net, x, device=None):
            y = x.to(device)
        def outer(*args, **kwargs):
            inner(*args, **kwargs)
        outer(torch.nn.Linear(2, 2), torch.ones(2, 3), device="cuda")
        """
    )
    inner = function_of(model, "inner")
    assert (inner.parameter("net").kind, inner.parameter("x").rank) == (Kind.MODULE, 2)
    assert value_of(model, "y", "inner").place is Place.ACCELERATOR


def test_behind_a_star_out_of_sight_any_parameter_may_be_anything() -> None:
    model = model_of(
        """
        import torch
        def f(a, b, *, c=1):
            pass
        f(torch.ones(2), *rest)
        """
    )
    parameters = function_of(model, "f").parameters
    assert parameters["a"].kind is Kind.TENSOR
    assert parameters["b"] == parameters["c"] == UNKNOWN


def test_keyword_only_parameters_are_not_filled_by_position() -> None:
    model = model_of("import torch\ndef f(x, *others, lr):\n    pass\nf(1, torch.ones(2), lr=torch.ones(2, 2))\n")
    assert function_of(model, "f").parameter("lr").rank == 2
    assert function_of(model, "f").parameter("others").items is not None


def test_what_functions_return_that_call_each_other() -> None:
    model = model_of(
        """
        from torch import nn
        def even(net, x, n):
            if n == 0:
                return net(x)
            return odd(net, x, n - 1)
        def odd(net, x, n):
            return even(net, x, n - 1)
        y = even(nn.Linear(2, 2), x, 4)
        """
    )
    assert value_of(model, "y").grad is Grad.CARRIES


@pytest.mark.parametrize("returned", ["distance", "(distance, a.shape[0])", "{'distance': distance}"])
def test_each_call_gets_what_the_function_returns_for_its_own_arguments(returned: str) -> None:
    model = model_of(
        f"""
        import torch
        from torch import nn
        net = nn.Linear(2, 2)
        def apart(a, b):
            distance = (a - b).square().sum()
            return {returned}
        trained = apart(net(torch.ones(2)), torch.ones(2))
        fixed = apart(torch.zeros(2), torch.ones(2))
        with torch.no_grad():
            tested = apart(net(torch.ones(2)), torch.ones(2))
        loaded = apart(load("a"), load("b"))
        """
    )
    found = [value_of(model, name) for name in ("trained", "fixed", "tested", "loaded")]
    parts = [value.items[0] if value.items else value.field("distance") or value for value in found]
    assert [part.grad for part in parts] == [Grad.CARRIES, Grad.DETACHED, Grad.DETACHED, Grad.UNKNOWN]


def test_a_decorator_that_changes_the_arguments_says_what_the_function_gets() -> None:
    model = model_of(
        """
        import functools
        import torch
        from torch import nn
        net = nn.Linear(2, 2)
        def through(function):
            @functools.wraps(function)
            def inner(x, y):
                return function(net(x), y)
            return inner
        @through
        def apart(a, b):
            return (a - b).square().sum()
        fixed = apart(torch.zeros(2), torch.ones(2))
        """
    )
    assert value_of(model, "fixed").grad is Grad.UNKNOWN


def test_a_function_that_only_calls_itself_ends_and_is_unknown() -> None:
    model = model_of("import torch\ndef f(x):\n    return f(x)\ndef g(x):\n    return [g(x)]\ny = f(1)\nz = g(1)\n")
    assert value_of(model, "y") == UNKNOWN


def test_a_walrus_has_a_value() -> None:
    model = model_of("import torch\nwhile (batch := torch.ones(2, 3)) is not None:\n    pass\n")
    assert value_of(model, "batch").rank == 2
