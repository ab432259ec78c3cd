"""MEM01 and MEM05: a function whose result this file only reads, while another file sends it backward."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

LIBRARY = """
    import torch
    import torch.nn.functional as F

    def outputs(model, batches: torch.utils.data.DataLoader):
        results = []
        for x, y in batches:
            results.append(model(x))
        return torch.cat(results)

    def accuracy(model, batches: torch.utils.data.DataLoader):
        model.eval()
        return outputs(model, batches).argmax(1).float().mean().item()
    """
EVALUATION = """
    import torch
    import torch.nn.functional as F

    def evaluate(model, batches: torch.utils.data.DataLoader):
        model.eval()
        total = 0
        for x, y in batches:
            total = total + F.cross_entropy(model(x), y)
        return total / len(batches)
    """
METHODS = """
    import torch
    import torch.nn.functional as F

    class Base:
        def __init__(self, model: torch.nn.Module, batches: torch.utils.data.DataLoader):
            self.model, self.batches = model, batches

        def score(self, x, y):
            return F.cross_entropy(self.model(x), y)

        def evaluate(self):
            self.model.eval()
            total = 0.0
            for x, y in self.batches:
                total += self.score(x, y).item()
            return total / len(self.batches)
    """
TRAINING = """
    import torch
    {imported}

    def main(model, batches, labels):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            loss = torch.nn.functional.cross_entropy({called}, labels)
            optimizer.zero_grad()
            {read}
            optimizer.step()
    """


def _codes(folder: Path, library: str, program: str) -> list[str]:
    """What is found in the library, with the lines."""
    (folder / "pyproject.toml").touch()
    (folder / "lib.py").write_text(dedent(library))
    (folder / "main.py").write_text(dedent(program))
    found = lint(Source.read(folder / "lib.py"), Settings.selecting("MEM01", "MEM05"), strict=True, project=Project())
    return [f"{finding.code} {finding.line}" for finding in found]


@pytest.mark.parametrize(
    ("imported", "called"),
    [
        ("from lib import outputs", "outputs(model, batches)"),
        ("from lib import *", "outputs(model, batches)"),
        ("import lib", "lib.outputs(model, batches)"),
    ],
)
def test_what_another_file_sends_backward_keeps_its_graph(tmp_path: Path, imported: str, called: str) -> None:
    sent = TRAINING.format(imported=imported, called=called, read="loss.backward()")
    assert _codes(tmp_path, LIBRARY, sent) == ["MEM05 11"]
    read = TRAINING.format(imported=imported, called=called, read="print(loss.item())")
    assert "MEM05 5" in _codes(tmp_path, LIBRARY, read)


def test_an_evaluation_that_another_file_sends_backward(tmp_path: Path) -> None:
    program = """
        from lib import evaluate

        def main(model, batches, optimizer):
            loss = evaluate(model, batches)
            loss.{read}()
            optimizer.step()
        """
    assert _codes(tmp_path, EVALUATION, program.format(read="backward")) == []
    assert [code.split()[0] for code in _codes(tmp_path, EVALUATION, program.format(read="item"))] == ["MEM05"]


@pytest.mark.parametrize("called", ["self.score(x, y)", "super().score(x, y)"])
def test_a_method_by_which_an_heir_trains(tmp_path: Path, called: str) -> None:
    program = """
        import torch
        from lib import Base

        class Trainer(Base):
            def fit(self):
                optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                for x, y in self.batches:
                    loss = {called}
                    optimizer.zero_grad()
                    loss.{read}()
                    optimizer.step()
        """
    assert "MEM05 9" not in _codes(tmp_path, METHODS, program.format(called=called, read="backward"))
    assert "MEM05 9" in _codes(tmp_path, METHODS, program.format(called=called, read="item"))


def test_a_method_by_which_an_object_of_an_heir_trains(tmp_path: Path) -> None:
    program = """
        import torch
        from lib import Base

        class Trainer(Base):
            pass

        def fit(model, batches):
            trainer = Trainer(model, batches)
            for x, y in batches:
                trainer.score(x, y).{read}()
        """
    assert "MEM05 9" not in _codes(tmp_path, METHODS, program.format(read="backward"))
    assert "MEM05 9" in _codes(tmp_path, METHODS, program.format(read="item"))


KEEPING = """
    import torch
    import torch.nn.functional as F

    class Base:
        def __init__(self, model: torch.nn.Module, batches: torch.utils.data.DataLoader):
            self.model, self.batches, self.losses = model, batches, []
            self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train(self):
            for x, y in self.batches:
                loss = F.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.losses.append(loss)
            return self.finish()

        def finish(self):
            return sum(loss.item() for loss in self.losses)
    """
EVALUATING = """
    import torch

    class Base:
        def __init__(self, model: torch.nn.Module, batches: torch.utils.data.DataLoader):
            self.model, self.batches, self.results = model, batches, []

        def evaluate(self):
            self.model.eval()
            for x, y in self.batches:
                self.results.append(self.model(x))
            return self.finish()

        def finish(self):
            return torch.cat(self.results).argmax(1).sum().item()
    """


@pytest.mark.parametrize(
    ("library", "attribute", "code"), [(KEEPING, "losses", "MEM01"), (EVALUATING, "results", "MEM05")]
)
def test_what_an_object_keeps_for_an_heir_in_another_file(
    tmp_path: Path, library: str, attribute: str, code: str
) -> None:
    program = """
        import torch
        from lib import Base

        class Heir(Base):
            def finish(self):
                total = torch.stack(self.{attribute}).mean()
                print(total.{read}())
        """
    sent = _codes(tmp_path, library, program.format(attribute=attribute, read="backward"))
    assert sent == []
    read = _codes(tmp_path, library, program.format(attribute=attribute, read="item"))
    assert code in [found.split()[0] for found in read]
