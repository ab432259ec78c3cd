"""Programs that no person writes but that a linter meets: generated, very long, very deep. Each is `name(n) -> text`.

All end with the same training function, in which one finding is certain.
"""

from __future__ import annotations

from collections.abc import Callable

HEAD = "import torch\nimport torch.nn as nn\n\n"
TRAIN = """
def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""
STEP = """        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def _lines(line: str, n: int) -> str:
    return "".join(line.replace("#", str(i)) for i in range(n))


def sum_of_terms(n: int) -> str:
    return "x = torch.ones(3)\ny = " + " + ".join(["x"] * n) + "\n"


def nested_literal(n: int) -> str:
    return "x = " + "[" * n + "torch.ones(1)" + "]" * n + "\n"


def nested_calls(n: int) -> str:
    return "x = torch.ones(3)\ny = " + "torch.relu(" * n + "x" + ")" * n + "\n"


def method_chain(n: int) -> str:
    return "x = torch.ones(3)\ny = x" + ".relu()" * n + "\n"


def conditional_chain(n: int) -> str:
    return "x = torch.ones(3)\ny = " + "x if flag else " * n + "x\n"


def reassigned(n: int) -> str:
    return "def f(x):\n    return x * 2\n\nx = torch.ones(3)\n" + "x = f(x)\n" * n


def reassigned_in_a_loop(n: int) -> str:
    return (
        "def f(x):\n    return x * 2\n\ndef g(x, loader):\n    for b in loader:\n"
        + "        x = f(x)\n" * n
        + "    return x\n"
    )


def branches(n: int) -> str:
    return "x = 0\n" + _lines("if c#:\n    x = torch.ones(#)\nelse:\n    x = None\n", n)


def alternatives(n: int) -> str:
    return (
        "def g(k):\n    if k == 0:\n        x = 0\n"
        + _lines("    elif k == #:\n        x = torch.ones(#)\n", n)
        + "    return x\n"
    )


def chain_of_functions(n: int) -> str:
    calls = "".join(f"def f{i}(x):\n    return f{i + 1}(x)\n\n" for i in range(n))
    return f"{calls}def f{n}(x):\n    x.backward()\n    return x\n"


def mutual_recursion(n: int) -> str:
    return "".join(f"def r{i}(x):\n    return r{(i + 1) % n}(x) + r{(i + 7) % n}(x)\n\n" for i in range(n)) + "r0(1)\n"


def many_layers(n: int) -> str:
    return (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + _lines("        self.l# = nn.Linear(2, 2)\n", n)
        + "    def forward(self, x):\n"
        + _lines("        x = self.l#(x)\n", n)
        + "        return x\n"
    )


def long_literal(n: int) -> str:
    return "data = [\n" + _lines("    {'a': #, 'b': [#, 'x'], 'c': torch.ones(#)},\n", n) + "]\n"


def many_loops(n: int) -> str:
    return "def g(a):\n" + _lines("    for b# in range(3):\n        a = a + b#\n", n) + "    return a\n"


def many_trainings(n: int) -> str:
    return _lines(TRAIN.replace("def train", "def train_#") + "\n", n)


def shared_global(n: int) -> str:
    return "total = 0\n" + _lines("def f#(loss):\n    global total\n    total = total + loss.item()\n\n", n)


def device_branches(n: int) -> str:
    return (
        "def step(model, loader, optimizer, use_cuda):\n    for batch in loader:\n        x, y = batch\n"
        + "        if use_cuda:\n            x = x.cuda()\n" * n
        + STEP
    )


def _step(lines: str) -> str:
    return "def step(model, loader, optimizer, criterion):\n    for x, y in loader:\n" + lines


def inner_loops(n: int) -> str:
    """With a forward pass in each, and with a sum that all add to."""
    inner = "        for b# in range(3):\n            total = total + model(x)[b#].item()\n"
    return _step("        total = 0\n" + _lines(inner, n) + STEP)


def sums_of_inner_loops(n: int) -> str:
    return _step("        x = 0\n" + _lines("        for b# in y:\n            x = x + b# * y[b#]\n", n) + STEP)


def many_losses(n: int) -> str:
    made = _lines("        x# = criterion(model(x.cuda()), y.cuda())\n", n)
    summed = "        x = " + " + ".join(f"x{i}" for i in range(n)) + "\n"
    return _step(made + summed + STEP + _lines("        print(x#.item())\n", n))


def many_prints(n: int) -> str:
    return _step(STEP + _lines("        print('#', loss.item())\n", n))


def many_appends(n: int) -> str:
    return "rows = []\n\n" + _step(STEP + "        rows.append(loss)\n" * n)


def many_loaders(n: int) -> str:
    return (
        "from torch.utils.data import DataLoader\n\ndef load(rows, model):\n"
        + _lines("    loader# = DataLoader(rows, batch_size=#, shuffle=True)\n", n)
        + _lines("    for x in loader#:\n        model(x.cuda())\n", n)
    )


def many_optimizers(n: int) -> str:
    return (
        "def fit(model, loader):\n"
        + _lines("    o# = torch.optim.SGD(model.parameters(), lr=0.1)\n", n)
        + "    for x in loader:\n        loss = model(x.cuda()).sum()\n"
        + _lines("        o#.zero_grad()\n", n)
        + "        loss.backward()\n"
        + _lines("        o#.step()\n", n)
    )


def many_comprehensions(n: int) -> str:
    return "def f(model, xs):\n" + _lines("    y# = [model(x).item() for x in xs]\n", n)


def many_timings(n: int) -> str:
    timed = "    start = time.time()\n    y = model(x.cuda())\n    print(time.time() - start)\n"
    return "import time\n\ndef f(model, x):\n" + timed * n


def loops_over_rows(n: int) -> str:
    return "def f(a, b, n):\n" + _lines("    for i in range(n):\n        a[i] = b[i] * #\n", n) + "    return a\n"


def many_tries(n: int) -> str:
    tried = "    try:\n        y = model(x)\n    except ValueError:\n        y = None\n"
    return "def f(model, x):\n" + tried * n + "    return y\n"


def mutual_training(n: int) -> str:
    return "".join(
        f"def r{i}(model, x, optimizer):\n    loss = model(x).sum()\n    loss.backward()\n    optimizer.step()\n"
        f"    r{(i + 1) % n}(model, x, optimizer)\n    r{(i * 7 + 3) % n}(model, x, optimizer)\n\n"
        for i in range(n)
    )


def chain_of_classes(n: int) -> str:
    first = "class C0(nn.Module):\n    def f0(self, x):\n        return x\n\n"
    return first + "".join(
        f"class C{i}(C{i - 1}):\n    def f{i}(self, x):\n        return self.f{i - 1}(x)\n\n" for i in range(1, n)
    )


Program = Callable[[int], str]
PROGRAMS: dict[Program, int] = {
    sum_of_terms: 1500,
    nested_literal: 200,
    nested_calls: 100,
    method_chain: 200,
    conditional_chain: 100,
    reassigned: 2000,
    reassigned_in_a_loop: 2000,
    branches: 300,
    alternatives: 150,
    chain_of_functions: 300,
    mutual_recursion: 200,
    many_layers: 300,
    long_literal: 500,
    many_loops: 300,
    many_trainings: 60,
    shared_global: 200,
    device_branches: 400,
    inner_loops: 24,
    sums_of_inner_loops: 200,
    many_losses: 100,
    many_prints: 200,
    many_appends: 60,
    many_loaders: 100,
    many_optimizers: 100,
    many_comprehensions: 200,
    many_timings: 100,
    loops_over_rows: 100,
    many_tries: 200,
    mutual_training: 100,
    chain_of_classes: 100,
}
"""Each with the size at which the tests run it."""


def text(program: Program, n: int) -> str:
    return HEAD + program(n) + TRAIN
