"""What the model believes of programs of ours holds when they run; and a false belief would be seen."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.beliefs.held_against import contradiction
from tests.beliefs.instrumented import Notes, described, instrumented
from tests.beliefs.watched import Watched
from tests.semantics.programs import model_of
from torchlint.semantics.values import NUMBER, STRING, Grad, Kind, Value

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT_RUN = {
    "image_classifier.py": ["--epochs", "1", "--samples", "64"],
    "mimo_channel.py": ["--steps", "2", "--batch", "4"],
    "gan.py": ["--steps", "2", "--batch", "8"],
}
PROGRAMS = {
    "names of numpy": """
        import torch

        x = torch.arange(24.0).reshape(2, 3, 4)
        rows = x.sum(axis=1), torch.argmax(x, axis=1), x.mean(axis=(0, 1), keepdims=True)
        largest, places = x.max(axis=2)
        print(rows, largest, places)
    """,
    "networks that return tuples": """
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(3, 4, batch_first=True)
                self.gru = nn.GRU(4, 4, batch_first=True)
                self.cell = nn.LSTMCell(4, 4)
                self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
                self.flat = nn.Flatten(2)
                self.pool = nn.MaxPool1d(2, return_indices=True)

            def forward(self, x):
                out, (hidden, cell) = self.rnn(x)
                whole = self.gru(out)
                h, c = self.cell(hidden[0])
                mixed, weights = self.attention(out, out, out)
                pooled, places = self.pool(mixed)
                return self.flat(whole[0]), h, c, mixed, weights, pooled, places

        outputs = Tagger()(torch.randn(2, 5, 3))
        first = outputs[0]
        print(first)
    """,
    "pooling": """
        import torch
        import torch.nn.functional as F

        x = torch.randn(2, 3, 8, 8)
        small = F.max_pool2d(x, 2)
        smaller, places = F.max_pool2d(small, 2, return_indices=True)
        smallest = F.adaptive_max_pool2d(smaller, 1)
        print(small, smaller, places, smallest)
    """,
    "lists of modules and of parameters": """
        import torch
        from torch import nn

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 3)
                self.register_buffer("steps", torch.zeros(3))

            def forward(self, x):
                return self.linear(x), x.sum()

        class Stack(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Layer() for _ in range(2)])
                self.more = nn.ModuleList()
                for _ in range(2):
                    self.more.append(Layer())
                self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])

            def forward(self, x):
                for layer in self.layers:
                    both = layer(x)
                    x = both[0]
                for layer, scale in zip(self.more, self.scales):
                    x, total = layer(x * scale)
                last = self.layers[0](x)
                return x, total, last, self.scales[0]

        net = Stack()
        results = net(torch.randn(2, 3))
        for name, child in net.named_children():
            print(name, child)
        for buffer in net.buffers():
            print(buffer)
        for name, parameter in net.named_parameters():
            print(name, parameter.grad)
        print(results)
    """,
    "letters, lists in lists, and numbers": """
        import numpy as np
        import torch

        letters = [letter for letter in "abc"]
        first = "abc"[0]
        position = "abc".find("b")
        history = [[], []]
        for values, value in zip(history, (1, 2)):
            values.append(value)
        known = history[0]
        grid = torch.zeros(2, 3).tolist()
        row = grid[0]
        like = torch.zeros(1, 5).type_as(torch.arange(3))
        part = torch.ones(2, dtype=torch.complex64).real
        shuffled = np.random.shuffle(np.arange(3))
        names = {0: "a"}
        for key in names.keys():
            print(key)
        for key, name in names.items():
            print(key, name)
        parts = np.split(np.zeros(4), 2)
        numbers = np.zeros(3).tolist()
        print(letters, first, position, known, grid, row, like, part, shuffled, parts, numbers)
    """,
    "views with autograd off": """
        import torch

        out = torch.nn.Linear(3, 1)(torch.randn(4, 3))
        with torch.no_grad():
            flat = out.squeeze()
            doubled = out * 2
            weight = torch.nn.Parameter(torch.ones(3))
            weight.mul_(2.0)
        print(flat, doubled, weight)
    """,
}


def false_beliefs(folder: Path, run: Callable[[], None]) -> list[tuple[str, str]]:
    watched = Watched(folder)
    with Notes() as notes, contextlib.redirect_stdout(io.StringIO()):
        run()
    kinds = [watched.value(number).kind for number in notes.facts]
    assert kinds.count(Kind.UNKNOWN) < 0.2 * len(kinds)
    return [(code, wrong) for _, code, wrong in watched.false_beliefs(notes.facts)]


def execute(path: Path) -> None:
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_that_the_model_believes_of_a_program_is_false(name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(dedent(PROGRAMS[name]))
    assert false_beliefs(tmp_path, lambda: execute(path)) == []


@pytest.mark.parametrize("script", SHORT_RUN)
def test_nothing_that_the_model_believes_of_an_example_is_false(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / script
    path.write_text((EXAMPLES / script).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", [script, *SHORT_RUN[script]])
    assert false_beliefs(tmp_path, lambda: execute(path)) == []


def test_every_expression_that_is_read_is_noted_once_and_nothing_else() -> None:
    model = model_of("def f(x: int = a):\n    x.y[i] += g(b, k=c)\n    return [d for d in e]\n")
    text, nodes = instrumented(model, 0)
    assert [model.code(node) for node in nodes] == ["a", "g(b, k=c)", "b", "c", "d", "e"]
    assert "x.y[i] += __note__(1, g(__note__(2, b), k=__note__(3, c)))" in text


@pytest.mark.parametrize(
    ("believed", "is_", "wrong"),
    [
        (Value(Kind.TENSOR, rank=1), "torch.zeros(2)", None),
        (Value(Kind.TENSOR, rank=2), "torch.zeros(2)", "of rank 2, and it is of rank 1"),
        (Value(Kind.TENSOR, dtype="int"), "torch.zeros(2)", "of int, and it is of float"),
        (Value(Kind.TENSOR, Grad.DETACHED), "torch.nn.Linear(1, 1).bias", "without a graph, and it has one"),
        (Value(Kind.TENSOR), "None", "a tensor, and it is a none"),
        (Value(Kind.TENSOR, optional=True), "None", None),
        (NUMBER.but(constant=3), "4", "3, and it is 4"),
        (STRING, "[1]", "a string, and it is a list 1"),
        (Value(Kind.LIST, element=NUMBER), "[1, 'a']", "with part 1 a number, and it is a string a"),
        (Value(Kind.TUPLE, items=(NUMBER,)), "(1, 2)", "of 1 parts, and it has 2"),
    ],
)
def test_a_false_belief_is_seen(believed: Value, is_: str, wrong: str | None) -> None:
    import torch

    assert contradiction(believed, described(eval(is_, {"torch": torch}))) == wrong
