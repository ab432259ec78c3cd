"""Naming a model, its data and its loss, and what is said when that goes wrong."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torchlint.runtime_check.toolkit import ToolError
from torchlint.runtime_check.toolkit.step import optimizer_maker, trainer
from torchlint.runtime_check.toolkit.subject import build, random_input, stand_in_loss, to_device

MODULE = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    number = 3

    def loss(model, batch): return model(batch[0]).sum()

    def pair(batch_size=2): return nn.Linear(4, 1), torch.ones(batch_size, 4)

    def triple(): return nn.Linear(4, 1), DataLoader(TensorDataset(torch.ones(6, 4)), batch_size=2), loss

    def loader(): return DataLoader(TensorDataset(torch.ones(6, 4)), batch_size=3)

    def empty(): return nn.Linear(4, 1), DataLoader(TensorDataset(torch.ones(0, 4)))

    def broken(): raise ValueError("no data here")

    def wrong(): return "model", 3

    class Factory:
        @staticmethod
        def make(): return nn.Linear(4, 1)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module of its own name for each test, since imported modules stay."""
    name = "subject_" + str(abs(hash(request.node.name)))
    (tmp_path / f"{name}.py").write_text(dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_what_a_callable_may_return(module: str) -> None:
    cpu = torch.device("cpu")
    assert build(f"{module}:pair").batch(cpu).shape == (2, 4)
    assert build(f"{module}:pair", batch_size=7).batch(cpu).shape == (7, 4)
    triple = build(f"{module}.py:triple", batch_size=7)
    assert [batch[0].shape for batch in triple.batches(cpu, 9)] == [(2, 4)] * 3
    assert triple.has_own_loss
    assert build(f"{module}:loader").loader.batch_size == 3
    made = build(f"{module}:Factory.make", ["N,4"], 5)
    assert made.batch(cpu)[0].shape == (5, 4)
    assert made.trained(cpu).in_features == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "`nonsense` names no callable: write package.module:callable"),
        ("{module}:", "names no callable"),
        ("no_such_module_anywhere:f", "there is no module no_such_module_anywhere in "),
        ("no_such_file.py:f", "there is no file no_such_file.py"),
        ("{module}:tripel", "has no `tripel`; did you mean `triple`?"),
        ("{module}:number", "is int, nothing that can be called"),
        ("{module}:broken", r"{module}:broken fails: ValueError: no data here \({module}.py:\d+\)"),
        ("{module}:wrong", r"returned \(str, int\), not `model, data` or `model, data, loss`"),
    ],
)
def test_a_wrong_name_or_a_callable_that_fails(module: str, name: str, message: str) -> None:
    with pytest.raises(ToolError, match=message.replace("{module}", module)):
        build(name.replace("{module}", module))


def test_a_module_that_cannot_be_imported_is_not_called_missing(module: str) -> None:
    Path("breaks_at_import.py").write_text("import torch\nimport a_library_that_is_not_there\n")
    with pytest.raises(ToolError, match=r"importing breaks_at_import fails: ModuleNotFoundError: .*\(breaks.*py:2\)"):
        build("breaks_at_import:f")


def test_what_a_subject_lacks_is_named_when_it_is_needed(module: str) -> None:
    cpu = torch.device("cpu")
    with pytest.raises(ToolError, match="gives a model without data: return `model, data`, or give --input"):
        build(f"{module}:Factory.make").batch(cpu)
    with pytest.raises(ToolError, match="gives no model"):
        build(f"{module}:loader").trained(cpu)
    with pytest.raises(ToolError, match="gives no DataLoader"):
        build(f"{module}:pair").loader  # noqa: B018
    with pytest.raises(ToolError, match="is empty"):
        build(f"{module}:empty").batch(cpu)


def test_inputs_made_of_shapes() -> None:
    assert random_input("N,3,8", 4).shape == (4, 3, 8)
    tokens = random_input("N, 16:int64", 2)
    assert tokens.dtype == torch.int64
    assert set(tokens.flatten().tolist()) <= {0, 1}
    for wrong in ("N,x", "3:float99", "", "2,-1", "N,4:relu"):
        with pytest.raises(ToolError, match="is no shape"):
            random_input(wrong, 2)


def test_the_loss_where_none_is_given() -> None:
    x = torch.ones(2, 4, requires_grad=True)
    own = torch.ones((), requires_grad=True)
    outputs = [SimpleNamespace(loss=own), {"loss": own}, own, own.reshape(1)]
    for output in outputs:
        assert stand_in_loss(lambda batch, output=output: output, x).item() == 1  # type: ignore[arg-type]
    assert stand_in_loss(lambda batch: (3 * x, [x, "name"]), x).item() == 10  # type: ignore[arg-type]
    assert stand_in_loss(lambda a, b: a * b, {"a": x, "b": x}).item() == 1  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="no output of the model has a gradient"):
        stand_in_loss(lambda batch: batch.detach(), x)  # type: ignore[arg-type]


def test_nested_batches_move_as_they_are() -> None:
    batch = {"x": (torch.ones(1), [torch.ones(2)]), "name": "a", "n": 3}
    moved = to_device(batch, torch.device("meta"))
    assert moved["x"][0].device.type == moved["x"][1][0].device.type == "meta"
    assert (type(moved["x"]), type(moved["x"][1]), moved["name"], moved["n"]) == (tuple, list, "a", 3)


def test_optimizers_by_name_and_by_import(module: str) -> None:
    parameters = [nn.Parameter(torch.ones(1))]
    assert optimizer_maker("SGD", 0.5)(parameters).param_groups[0]["lr"] == 0.5
    assert type(optimizer_maker("torch.optim:RMSprop", 9.0)(parameters)) is torch.optim.RMSprop
    for name in ("Sdg", "Optimizer", "lr_scheduler"):
        with pytest.raises(ToolError, match=f"torch.optim has no {name}"):
            optimizer_maker(name, 0.1)


def test_a_model_that_cannot_be_trained() -> None:
    make, cpu = optimizer_maker("SGD", 0.1), torch.device("cpu")
    with pytest.raises(ToolError, match="no parameter to train"):
        trainer(nn.ReLU(), stand_in_loss, make, cpu)
    training = trainer(nn.Linear(2, 2), lambda model, batch: model(batch), make, cpu)
    with pytest.raises(ToolError, match=r"a tensor of one number, not shape \(3, 2\)"):
        training.step(torch.ones(3, 2))
    training = trainer(nn.Linear(2, 2), lambda model, batch: model(batch).sum().detach(), make, cpu)
    with pytest.raises(ToolError, match="the backward pass fails"):
        training.step(torch.ones(3, 2))
