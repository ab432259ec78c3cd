"""Context managers and decorators: what they do to autograd, to arguments and to results."""

from __future__ import annotations

import pytest

from tests.semantics.programs import binding_of, call_on, function_of, model_of, value_of
from torchlint.semantics.values import UNKNOWN, Grad, Kind

MANAGERS = """
    import contextlib
    import torch
    from contextlib import contextmanager, nullcontext
    from torch import nn

    net = nn.Linear(2, 2)

    @contextmanager
    def evaluating(net):
        net.eval()
        with torch.no_grad():
            yield net
        net.train()

    @contextmanager
    def timed():
        yield

    @contextmanager
    def maybe(flag):
        if flag:
            with torch.no_grad():
                yield
        else:
            yield

    class Off:
        def __enter__(self):
            torch.set_grad_enabled(False)
        def __exit__(self, *exception):
            torch.set_grad_enabled(True)

    class Timer:
        def __enter__(self):
            return self
        def __exit__(self, *exception):
            pass

    def grad(training):
        return nullcontext() if training else torch.no_grad()
"""


@pytest.mark.parametrize(
    ("context", "enabled"),
    [
        ("torch.no_grad()", False),
        ("torch.inference_mode(False)", True),
        ("torch.enable_grad()", True),
        ("evaluating(net)", False),
        ("timed()", True),
        ("maybe(flag)", None),
        ("Off()", False),
        ("Timer()", True),
        ("nullcontext()", True),
        ("torch.no_grad() if flag else nullcontext()", None),
        ("(torch.no_grad if flag else nullcontext)()", None),
        ("(torch.no_grad if flag else torch.inference_mode)()", False),
        ("grad(flag)", None),
        ("torch.set_grad_enabled(phase == 'train')", None),
        ("timed(), evaluating(net)", False),
        ("library.context(net)", True),
    ],
)
def test_what_a_context_does_to_autograd(context: str, enabled: bool | None) -> None:
    model = model_of(MANAGERS + f"    with {context}:\n        y = net(x)\n    z = net(x)\n")
    expected = {True: Grad.CARRIES, False: Grad.DETACHED, None: Grad.UNKNOWN}[enabled]
    assert value_of(model, "y").grad is expected
    assert model.grad_enabled(call_on(model, "net(x)").node) is enabled
    assert value_of(model, "z").carries


@pytest.mark.parametrize("context", ["context", "self.context"])
def test_a_context_that_a_variable_holds(context: str) -> None:
    model = model_of(
        f"""
        import torch
        class Runner:
            def __init__(self, net):
                self.net = torch.nn.Linear(2, 2)
                self.context = torch.no_grad()
            def run(self, x):
                context = torch.no_grad()
                with {context}:
                    y = self.net(x)
        """
    )
    assert value_of(model, "y", "Runner.run").grad is Grad.DETACHED


def test_a_context_that_a_stack_enters_lasts_until_the_stack_ends() -> None:
    model = model_of(
        MANAGERS
        + """
    with contextlib.ExitStack() as stack:
        a = net(x)
        stack.enter_context(timed())
        b = net(x)
        stack.enter_context(torch.no_grad())
        c = net(x)
    d = net(x)
    """
    )
    assert [value_of(model, name).carries for name in "abcd"] == [True, True, False, True]


def test_a_context_that_its_method_enters_rules_what_follows() -> None:
    model = model_of(
        MANAGERS
        + """
    a = net(x)
    torch.no_grad().__enter__()
    b = net(x)
    guard = torch.enable_grad()
    guard.__enter__()
    c = net(x)
    guard.__exit__(None, None, None)
    d = net(x)
    """
    )
    assert [model.grad_enabled(binding_of(model, name).writes[-1].target) for name in "abcd"] == [
        True,
        False,
        True,
        None,
    ]


def test_a_switch_on_one_branch_leaves_the_state_open() -> None:
    model = model_of(
        """
        import torch
        def f(net, x):
            if not training:
                torch.set_grad_enabled(False)
            y = torch.nn.functional.relu(net.weight)
        """
    )
    assert model.grad_enabled(call_on(model, "torch.nn.functional.relu(net.weight)").node) is None


def test_a_with_in_one_line_is_a_region() -> None:
    model = model_of(MANAGERS + "    with torch.no_grad(): y = net(x)\n")
    assert model.grad_enabled(call_on(model, "net(x)").node) is False


@pytest.mark.parametrize(("context", "kind"), [("evaluating(net)", Kind.MODULE), ("Timer()", Kind.INSTANCE)])
def test_what_a_context_binds(context: str, kind: Kind) -> None:
    model = model_of(MANAGERS + f"    with {context} as bound:\n        pass\n")
    assert value_of(model, "bound").kind is kind


@pytest.mark.parametrize(
    ("decorator", "enabled"),
    [
        ("torch.no_grad", False),
        ("torch.set_grad_enabled(False)", False),
        ("torch.enable_grad()", True),
        ("evaluating(net)", False),
        ("timed()", True),
        ("functools.wraps(f)", True),
        ("torch.compile(fullgraph=True)", True),
        ("hydra.main(config_path='conf')", True),
        ("torch.distributed.elastic.multiprocessing.errors.record", True),
        ("application.command()", True),
        ("library.smart", None),
    ],
)
def test_what_a_decorator_does_to_autograd(decorator: str, enabled: bool | None) -> None:
    head = "    import functools, hydra, typer, library\n    application = typer.Typer()\n"
    model = model_of(MANAGERS + head + f"    @{decorator}\n    def run(x):\n        return net(x)\n")
    assert model.grad_enabled(call_on(model, "net(x)").node) is enabled


WRAPPERS = """
    import functools, time, torch

    def traced(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            result = function(*args, **kwargs)
            print(function.__name__)
            return result
        return wrapper

    def timed(function):
        def wrapper(*args, **kwargs):
            start = time.time()
            result = function(*args, **kwargs)
            return result, time.time() - start
        return wrapper

    def with_device(function):
        def wrapper(x):
            return function("cuda", x)
        return wrapper

    def retried(times):
        def decorate(function):
            def wrapper(*args):
                return function(*args)
            return wrapper
        return decorate

    def frozen(function):
        def wrapper(*args):
            with torch.no_grad():
                return function(*args)
        return wrapper

    REGISTRY = []
    def registered(function):
        REGISTRY.append(function)
        return function
"""


@pytest.mark.parametrize(
    ("decorator", "keeps"),
    [("traced", True), ("registered", True), ("retried(3)", True), ("timed", False), ("with_device", True)],
)
def test_a_decorator_of_the_file_may_change_what_is_returned(decorator: str, keeps: bool) -> None:
    model = model_of(WRAPPERS + f"    @{decorator}\n    def f(x):\n        return torch.ones(2, 3)\n    y = f(1)\n")
    assert (value_of(model, "y").rank == 2) is keeps


def test_a_decorator_of_the_file_may_change_what_is_handed_over() -> None:
    model = model_of(WRAPPERS + "    @with_device\n    def f(device, x):\n        pass\n    f(torch.ones(2, 3))\n")
    assert function_of(model, "f").parameter("device") == UNKNOWN
    model = model_of(WRAPPERS + "    @traced\n    def f(x):\n        pass\n    f(torch.ones(2, 3))\n")
    assert function_of(model, "f").parameter("x").rank == 2


@pytest.mark.parametrize(("decorator", "enabled"), [("traced", True), ("retried(3)", True), ("frozen", None)])
def test_a_decorator_of_the_file_that_never_touches_autograd_leaves_it_on(decorator: str, enabled: bool | None) -> None:
    net = "    net = torch.nn.Linear(2, 2)\n"
    model = model_of(WRAPPERS + net + f"    @{decorator}\n    def f(x):\n        return net(x)\n    f(1)\n")
    assert model.grad_enabled(call_on(model, "net(x)").node) is enabled


@pytest.mark.parametrize(("last", "enabled"), [("return inner", None), ("print(x)", False)])
def test_a_function_that_is_handed_out_may_run_later(last: str, enabled: bool | None) -> None:
    model = model_of(f"""
        import torch

        @torch.no_grad()
        def outer(net, x):
            def inner():
                return net(x)
            {last}
        """)
    assert model.grad_enabled(call_on(model, "net(x)").node) is enabled
