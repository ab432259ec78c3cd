"""Generators, iterators of classes of the file, and loops that end early."""

from __future__ import annotations

import pytest

from tests.semantics.programs import function_of, model_of, value_of
from tests.support import findings
from torchlint.semantics.entities import Role
from torchlint.semantics.values import UNKNOWN, Grad, Kind, Place

HEAD = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    net = nn.Linear(3, 1).to("cuda")
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(dataset, num_workers=4, pin_memory=True)
"""


def test_a_generator_yields_what_it_moved() -> None:
    model = model_of(
        HEAD
        + """
    def moved(loader, device):
        for x, y in loader:
            yield x.to(device), y.to(device)
    def all_of(loader):
        yield from moved(loader, "cuda")
    for x, y in all_of(loader):
        pass
    """
    )
    assert (value_of(model, "x").kind, value_of(model, "x").place) == (Kind.BATCH, Place.ACCELERATOR)


def test_a_loop_over_losses_that_a_generator_yields_trains() -> None:
    model = model_of(
        HEAD
        + """
    def losses(loader):
        for x in loader:
            yield net(x.cuda()).sum()
    for loss in losses(loader):
        opt.zero_grad()
        loss.backward()
        opt.step()
    """
    )
    assert value_of(model, "loss").carries
    assert model.loops[-1].role is Role.STEPS


ITERATORS = {
    "__iter__ that yields": """
        def __iter__(self):
            for batch in self.loader:
                yield batch.to(self.device)
    """,
    "__iter__ and __next__": """
        def __iter__(self):
            self.iterator = iter(self.loader)
            return self
        def __next__(self):
            return next(self.iterator).to(self.device)
    """,
    "__iter__ of another object": """
        def __iter__(self):
            return map(lambda batch: batch.to(self.device), self.loader)
    """,
}


@pytest.mark.parametrize("methods", ITERATORS.values(), ids=ITERATORS)
@pytest.mark.parametrize(
    "loop", ["for x in feeder:", "for i, x in enumerate(feeder):", "while x := next(iter(feeder)):"]
)
def test_objects_of_a_class_of_the_file_are_iterated_by_its_methods(methods: str, loop: str) -> None:
    model = model_of(
        HEAD
        + """
    class Feeder:
        def __init__(self, loader, device):
            self.loader = loader
            self.device = device
    """
        + methods
        + f"\n    feeder = Feeder(loader, 'cuda')\n    {loop}\n        pass\n"
    )
    assert (value_of(model, "x").kind, value_of(model, "x").place) == (Kind.BATCH, Place.ACCELERATOR)


def test_what_an_object_of_a_class_out_of_sight_yields_is_unknown() -> None:
    model = model_of("import torch\nfrom library import Feeder\nfor x in Feeder(loader):\n    pass\n")
    assert value_of(model, "x") == UNKNOWN


TRAINING = """
        opt.zero_grad()
        loss = net(x.cuda(non_blocking=True)).sum()
        loss.backward()
        opt.step()
        print(loss.item())
"""


@pytest.mark.parametrize(
    "loop",
    [
        "it = iter(loader)\n    while True:\n        try:\n            x = next(it)\n"
        "        except StopIteration:\n            break",
        "it = iter(loader)\n    while (x := next(it, None)) is not None:",
        "def cycle(loader):\n        while True:\n            yield from loader\n    batches = cycle(loader)\n"
        "    for step in range(100):\n        x = next(batches)",
    ],
    ids=["while True", "walrus", "endless generator"],
)
def test_steps_over_batches_that_next_takes(loop: str) -> None:
    code = HEAD + "    " + loop + TRAINING
    assert [found.code for found in findings(code, "SYNC01")] == ["SYNC01"]


def test_what_is_bound_before_a_continue_or_break_is_known_behind_the_loop() -> None:
    model = model_of(
        """
        import torch
        def f(items):
            a = b = None
            for item in items:
                if item:
                    a = torch.ones(2)
                    continue
                if item > 3:
                    b = torch.ones(2)
                    break
            c = a
            d = b
        """
    )
    assert value_of(model, "c", "f").kind is value_of(model, "d", "f").kind is Kind.TENSOR


def test_an_endless_loop_without_a_break_has_no_end() -> None:
    model = model_of(
        """
        import torch
        def f(x):
            while True:
                x = torch.relu(x)
                if x.sum() > 1:
                    return x
        def g(x):
            while True:
                for i in x:
                    break
                if x:
                    break
            return 1
        y = f(torch.ones(2))
        z = g(1)
        """
    )
    assert not value_of(model, "y").optional
    assert value_of(model, "z").kind is Kind.NUMBER


def test_match_binds_names_and_ends_where_it_has_a_case_for_the_rest() -> None:
    model = model_of(
        """
        import torch
        def f(x, kind):
            part = torch.ones(2)
            match x:
                case torch.Tensor() as tensor:
                    return tensor
                case [part, *others]:
                    pass
                case _:
                    raise ValueError
            rest = part
        """
    )
    assert value_of(model, "tensor", "f").kind is Kind.TENSOR
    assert value_of(model, "rest", "f") == UNKNOWN


def test_a_starred_target_takes_the_rest() -> None:
    model = model_of("import torch\nfirst, *rest, last = torch.ones(2), 1, 2, 'text'\n")
    assert value_of(model, "first").kind is Kind.TENSOR
    assert value_of(model, "last").kind is Kind.STRING
    assert value_of(model, "rest").element is not None
    assert value_of(model, "rest").element.kind is Kind.NUMBER  # type: ignore[union-attr]


def test_what_a_closure_returns_the_optimizer_returns() -> None:
    model = model_of(
        HEAD
        + """
    def closure():
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        return loss
    loss = opt.step(closure)
    """
    )
    assert value_of(model, "loss").grad is Grad.CARRIES
    assert function_of(model, "closure").is_step
