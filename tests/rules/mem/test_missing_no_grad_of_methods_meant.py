"""Calls of objects out of sight, by what the methods of the project say that the call may mean."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.mem.projects import linted
from tests.support import findings


@pytest.mark.parametrize(("switch", "count"), [("with torch.no_grad():", 0), ("if True:", 1)])
def test_the_only_method_that_takes_the_keywords_of_a_call(tmp_path: Path, switch: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    process = f"""
        import torch

        class Process(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(4, 4)

            def forward(self, noise, steps=3):
                return self.draw(noise, steps)

            def draw(self, noise, steps):
                {switch}
                    for _ in range(steps):
                        noise = self.net(noise)
                    return noise
        """
    (tmp_path / "process.py").write_text(dedent(process))
    main = """
        import torch

        def evaluate(model, batches):
            for noise in batches:
                print(model.forward(noise, steps=9).mean().item())
        """
    (tmp_path / "main.py").write_text(dedent(main))
    assert len(linted(tmp_path)) == count


@pytest.mark.parametrize(
    ("switch", "given", "count"),
    [
        ("with torch.no_grad():", "support=x, query=x", 0),
        ("if True:", "support=x, query=x", 1),
        ("with torch.no_grad():", "x, x", 1),
    ],
)
def test_one_of_several_forward_passes_that_are_meant_decides_by_itself(
    tmp_path: Path, switch: str, given: str, count: int
) -> None:
    methods = f"""
        import torch

        class Near(torch.nn.Module):
            def forward(self, support, query, model=None):
                return model(query) - model(support)

        class Far(torch.nn.Module):
            def forward(self, support, query, model=None):
                if not self.training:
                    {switch}
                        return model(query)
                return model(query) + model(support)
        """
    main = f"""
        import torch

        def evaluate(method, batches):
            method.eval()
            for x in batches:
                print(method({given}).mean().item())
        """
    assert len(linted(tmp_path, methods=methods, main=main)) == count


@pytest.mark.parametrize(
    ("given", "optional", "update", "count"),
    [
        ("x, y, x", "", "grad(loss, w)[0]", 0),
        ("x, y, x", ", scale=1, shift=0", "grad(loss, w)[0]", 0),
        ("x, y, x", ", scale", "grad(loss, w)[0]", 1),
        ("x, y", "", "grad(loss, w)[0]", 1),
        ("x, y, x", "", "w.mean()", 1),
    ],
)
def test_a_pass_that_fits_the_call_takes_gradients_on_the_way(
    tmp_path: Path, given: str, optional: str, update: str, count: int
) -> None:
    learner = f"""
        import torch
        from torch.autograd import grad

        class Learner(torch.nn.Module):
            def forward(self, support, labels, query{optional}):
                w = torch.ones(4, requires_grad=True)
                loss = ((support * w).sum(1) - labels).square().mean()
                return query * (w - {update})
        """
    main = f"""
        import torch

        class Trainer:
            def __init__(self, net):
                self.net = net

            def validate(self, batches):
                self.net.eval()
                for x, y in batches:
                    print(self.net({given}).mean().item())
        """
    assert len(linted(tmp_path, learner=learner, main=main)) == count


@pytest.mark.parametrize(("switch", "count"), [("@torch.no_grad()", 0), ("@torch.jit.ignore", 1)])
def test_a_method_of_a_network_is_not_that_of_the_same_name_of_another_object(
    tmp_path: Path, switch: str, count: int
) -> None:
    base = f"""
        import torch

        class Base(torch.nn.Module):
            {switch}
            def predict(self, x):
                return self(x)
        """
    decoder = """
        class Decoder:
            def predict(self, x):
                return x + 1
        """
    main = """
        import torch
        from library import Network

        def evaluate(network: torch.nn.Module, batches):
            right = 0
            for x, y in batches:
                right += (network.predict(x).argmax(1) == y).sum().item()
            return right
        """
    assert len(linted(tmp_path, base=base, decoder=decoder, main=main)) == count


@pytest.mark.parametrize(("told", "count"), [("eval()", 1), ('eval("a = b + c")', 0), ("eval(batches)", 0)])
def test_who_evaluates_what_it_is_given_is_no_network(told: str, count: int) -> None:
    """`table.eval("a = b + c")` of pandas."""
    code = f"""
    import torch

    def scores(thing, batches):
        thing.{told}
        for batch in batches:
            found = thing.rank(batch.cuda())
            print(found)
    """
    assert len(findings(code, "MEM05")) == count
