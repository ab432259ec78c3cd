"""The chain of facts behind a finding, in words."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.engine import lint
from torchlint.semantics.account import chain, describe, of_loop
from torchlint.semantics.model import Model
from torchlint.semantics.project import Project
from torchlint.semantics.values import NONE, UNKNOWN, Grad, Kind, Place, Value
from torchlint.source import Source

TRAINING = """
import torch

def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        output = model(x)
        loss = criterion(output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total

net = torch.nn.Linear(2, 2).cuda()
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4)))
for epoch in range(3):
    train(net, data, torch.optim.SGD(net.parameters(), lr=0.1), torch.nn.CrossEntropyLoss())
"""


def model_of(text: str, path: Path = Path("module.py")) -> Model:
    return Project().model_to_lint(Source.from_text(dedent(text), path))


def facts(model: Model, code: str) -> list[str]:
    """The chain of the first expression that reads so, a fact a line."""
    nodes = [n for t in (cst.Call, cst.AugAssign, cst.FunctionDef) for n in model.nodes_of(t)]
    node = next(node for node in nodes if model.code(node).startswith(code))
    return [f"{model.line(fact.node)}: {fact.text}" for fact in chain(model, node)]


def test_a_readback_is_explained_by_its_loop_and_the_way_of_its_value() -> None:
    assert facts(model_of(TRAINING), "loss.item()") == [
        "6: Each iteration is a training step, since it runs `loss.backward()` (line 11), over a data loader.",
        "7: `y` is a batch, or a part of one, on the device, carries no graph: what `y.cuda` returns.",
        "8: `output` is a tensor on the device, carries a graph: what `model` computes.",
        "9: `loss` is a tensor of floats with 0 dimensions on the device, carries a graph: what `criterion` returns.",
    ]


def test_a_function_is_explained_by_what_its_callers_hand_in() -> None:
    assert facts(model_of(TRAINING), "def train")[0] == (
        "4: `model` is a module of class `torch.nn.Linear` on the device: line 19 hands it in."
    )


def test_what_a_caller_repeats_is_said_where_there_is_no_loop() -> None:
    model = model_of(
        """
        import torch

        def step(model, x):
            loss = model(x).sum()
            loss.backward()
            return loss.item()

        net = torch.nn.Linear(2, 2)
        for epoch in range(9):
            step(net, torch.ones(2))
        """
    )
    assert facts(model, "loss.item()")[-1] == "11: `step` is called in a loop here: each iteration is a training step."


def test_a_value_of_another_file_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "lib.py").write_text(
        "import torch\n\ndef objective(x):\n    return torch.ones(2, requires_grad=True) * x\n"
    )
    script = "import torch\nfrom lib import objective\nloss = objective(3)\nloss.backward()\nprint(loss)\n"
    (tmp_path / "main.py").write_text(script)
    model = Project().model_to_lint(Source.read(tmp_path / "main.py"))
    assert any("what `objective` of `lib` returns" in fact for fact in facts(model, "print(loss)"))


DESCRIPTIONS = {
    "not known": UNKNOWN,
    "None": NONE,
    "3": Value(Kind.NUMBER, constant=3),
    "the CPU": Value(Kind.DEVICE, place=Place.HOST),
    "a tensor of floats with 1 dimension on the device, carries a graph": Value(
        Kind.TENSOR, Grad.CARRIES, Place.ACCELERATOR, rank=1, dtype="float"
    ),
    "a tensor of complex numbers": Value(Kind.TENSOR, dtype="complex"),
    "a tensor on the host, carries no graph (or None, or a number)": Value(
        Kind.TENSOR, Grad.DETACHED, Place.HOST, optional=True
    ),
    "a list that yields a tensor": Value(Kind.LIST, element=Value(Kind.TENSOR)),
    "a tuple of (a tensor; a number)": Value(Kind.TUPLE, items=(Value(Kind.TENSOR), Value(Kind.NUMBER))),
    "a dict with 'loss': a tensor": Value(Kind.DICT, fields=(("loss", Value(Kind.TENSOR)),)),
    "a module of class `torch.nn.Linear`": Value(Kind.MODULE, ref="torch.nn.Linear"),
}


@pytest.mark.parametrize(("text", "value"), DESCRIPTIONS.items(), ids=DESCRIPTIONS.keys())
def test_a_value_is_described(text: str, value: Value) -> None:
    assert describe(value) == text


def test_every_kind_has_a_noun() -> None:
    assert all(describe(Value(kind)) for kind in Kind)


def test_findings_carry_the_chain_with_its_places() -> None:
    source = Source.from_text(TRAINING)
    finding = next(finding for finding in lint(source) if finding.code == "SYNC01")
    assert [(step.line, source.text[step.start : step.end]) for step in finding.chain] == [
        (6, "for x, y in loader:"),
        (7, "y"),
        (8, "output"),
        (9, "loss"),
    ]


def test_the_first_of_several_backward_passes_is_named_wherever_they_lie_in_memory() -> None:
    steps = "\n".join(
        f"def step_{number}(model, x):\n    loss_{number} = model(x).sum()\n    loss_{number}.backward()\n"
        for number in range(12)
    )
    calls = "\n".join(f"    step_{number}(model, x)" for number in range(12))
    text = f"import torch\n\n{steps}\nmodel = torch.nn.Linear(2, 2).cuda()\nfor x in torch.ones(9, 2):\n{calls}\n"
    for _ in range(3):
        model = model_of(text)
        [loop] = model.loops
        assert "since it runs `loss_0.backward()`" in of_loop(model, loop)
