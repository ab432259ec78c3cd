"""What the files that use a file say of it: who constructs its classes, and who calls with autograd off."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.semantics.projects import model_of, value_of, write
from torchlint.semantics.entities import Role
from torchlint.semantics.project import Project
from torchlint.semantics.values import Grad, Kind
from torchlint.source import Source

TRAINER = """
    from torch.utils.data import DataLoader

    class Trainer:
        def __init__(self, name, net):
            self.held = net

        def step(self, x):
            network = self.held
            {work}
    """
PROGRAM = """
    import torch
    from trainer import Trainer

    Trainer("first", torch.nn.Linear(2, 2)).step(torch.ones(2))
    """


@pytest.mark.parametrize(
    ("work", "kind"),
    [("print(network.train())", Kind.MODULE), ("return network", Kind.UNKNOWN)],
    ids=["a class that trains", "one of which nobody asks"],
)
def test_what_other_files_give_a_constructor_is_known_where_the_class_works_with_it(
    tmp_path: Path, work: str, kind: Kind
) -> None:
    write(tmp_path, {"trainer.py": TRAINER.format(work=work), "main.py": PROGRAM})
    assert value_of(model_of(tmp_path, "trainer.py"), "network").kind is kind


STEPPING = """
    import torch

    class Tuner:
        def __init__(self):
            self.net = torch.nn.Linear(4, 1)
            self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def update(self, x, training=True):
            {gradients}
                loss = self.net(x).mean()
            if training:
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            return loss
    """
FEEDING = """
    import torch
    {imported}

    tuner, batches = Tuner(), [torch.ones(2, 4), torch.ones(2, 4)]
    for x in batches:
        tuner.update(x)
    for x in batches:
        with torch.no_grad():
            loss = tuner.update(x, training=False)
        loss.item()
    """


@pytest.mark.parametrize("apart", [False, True], ids=["in one file", "in two files"])
@pytest.mark.parametrize(("gradients", "trains"), [("if True:", False), ("with torch.enable_grad():", True)])
def test_what_is_called_with_autograd_off_does_not_train(
    tmp_path: Path, *, apart: bool, gradients: str, trains: bool
) -> None:
    stepping = dedent(STEPPING.format(gradients=gradients))
    feeding = dedent(FEEDING.format(imported="from tuner import Tuner" if apart else ""))
    write(tmp_path, {"tuner.py": stepping, "main.py": feeding if apart else stepping + feeding})
    model = model_of(tmp_path, "main.py")
    training, evaluation = model.loops
    assert training.role is Role.STEPS
    assert model.effects(training).has("optimizer_steps")
    assert model.effects(evaluation).has("optimizer_steps") is trains
    assert trains or evaluation.role is Role.EVALUATION


def test_a_caller_is_known_when_the_project_has_forgotten_its_model(tmp_path: Path) -> None:
    calls = "from engine import total\nfor batch in batches:\n    total(batch)\n"
    engine = "import torch\n\ndef total(losses):\n    for loss in losses:\n        print(loss.item())\n"
    write(tmp_path, {"engine.py": engine, "first.py": calls, "second.py": calls})
    model = Project(characters_kept=1).model_to_lint(Source.read(tmp_path / "engine.py"))
    callers = [model.caller(call) for call in model.functions[1].foreign_callers]
    assert [home.code(call.node) for home, call in filter(None, callers)] == ["total(batch)", "total(batch)"]


DATA = """
    import torch
    from torch.utils.data import DataLoader

    def load(pinned=False):
        train = DataLoader(rows, pin_memory=True)
        test = DataLoader(rows)
        return train, test

    def network():
        return torch.nn.Linear(2, 2)

    def zeros():
        return torch.zeros(3)
    """
STEPS = """
    def run(loader, net, noise):
        for x in loader:
            net(x.cuda() + noise).sum().backward()
    """
MAIN = """
    from data import load, network, zeros
    from steps import run

    {load}
    net = network()
    noise = zeros()
    run(loader, net, noise)
    """


@pytest.mark.parametrize(
    ("load", "kind", "pinned"),
    [
        ("loader, test = load()", Kind.LOADER, True),
        ("train, loader = load()", Kind.LOADER, False),
        ("loader = load()[0]", Kind.UNKNOWN, False),
        ("loader, *rest = load()", Kind.LOADER, True),
        ("first, *loader = load()", Kind.LIST, False),
        ("loader, test = load()\n    loader = [loader]", Kind.LIST, False),
    ],
)
def test_what_a_caller_has_from_a_third_file(tmp_path: Path, load: str, kind: Kind, pinned: bool) -> None:
    write(tmp_path, {"data.py": DATA, "steps.py": STEPS, "main.py": MAIN.format(load=load)})
    (run,) = (function for function in model_of(tmp_path, "steps.py").functions if function.name == "run")
    assert (run.parameter("loader").kind, run.parameter("loader").pinned) == (kind, pinned)
    assert run.parameter("net").kind is Kind.MODULE
    assert run.parameter("noise").kind is Kind.UNKNOWN  # of a tensor, what the function was given decides


@pytest.mark.parametrize(
    ("handed", "known"),
    [
        ("start(network())", True),
        ("start(network())\ndef later(net):\n    start(net)\n    later(net)\nlater(network())", True),
        ("start(network())\ndef later(net):\n    start(net)\n    later(net)\nlater(zeros())", False),
        ("net = network()\nnet = net.cuda()\nstart(net)", True),
        ("net = network().to(device).eval()\nstart(net)", True),
        ("start(network())\nstart(network())", True),
        ("start(network())\nstart(zeros())", False),
        ("start(network())\nnotify(start)", False),
        ("net = network()\nnet = first(net)\nstart(net)", False),
    ],
)
def test_what_a_caller_has_from_a_third_file_through_its_own_functions(
    tmp_path: Path, handed: str, known: bool
) -> None:
    lines = ["from data import network, zeros", "from steps import run", "def start(net):", "    again(net)"]
    lines += ["def again(net):", "    run(rows, net, 0)", handed]
    write(tmp_path, {"data.py": DATA, "steps.py": STEPS, "main.py": "\n".join(lines)})
    (run,) = (function for function in model_of(tmp_path, "steps.py").functions if function.name == "run")
    assert (run.parameter("net").ref == "torch.nn.Linear") is known


def test_what_one_file_asks_of_a_caller_is_not_seen_by_the_next(tmp_path: Path) -> None:
    main = """
        from data import load
        from steps import run

        def made():
            return load()

        train, test = load()
        run(train, None, 0)
        """
    other = "from main import made\n\nfirst = made()\nfor x in first:\n    print(x.cuda().item())\n"
    write(tmp_path, {"data.py": DATA, "steps.py": STEPS, "main.py": main, "other.py": other})
    project = Project()
    project.model_to_lint(Source.read(tmp_path / "steps.py"))
    after = project.model_to_lint(Source.read(tmp_path / "other.py"))
    assert value_of(after, "first") == value_of(model_of(tmp_path, "other.py"), "first")


CHAIN = """
    import torch

    def innermost(x):
        return x * 2

    def inner(x):
        return innermost(x)

    def middle(x):
        return inner(x)

    def outer(x):
        return middle(x)

    def outermost(x):
        return outer(x)

    def train(net, x):
        innermost(net(x)).sum().backward()
    """
ASKING = """
    import torch
    from chain import {name}

    out = {name}(torch.zeros(3, requires_grad=True))
    out.sum().backward()
    """


def test_what_a_function_returns_does_not_hang_on_which_file_asks_first(tmp_path: Path) -> None:
    names = ("outermost", "middle")
    write(tmp_path, {"chain.py": CHAIN, **{f"{name}.py": ASKING.format(name=name) for name in names}})
    found = []
    for order in (names, names[::-1]):
        project = Project()
        models = {name: project.model_to_lint(Source.read(tmp_path / f"{name}.py")) for name in order}
        found.append([value_of(models[name], "out") for name in names])
    assert [[value.kind for value in values] for values in found] == [[Kind.UNKNOWN, Kind.TENSOR]] * 2


PAIR_LOSS = """
    from torch import nn

    class PairLoss(nn.Module):
        def forward(self, x, other):
            return self.compare(x, other)
"""
USED_LOSS = """
    import torch
    from losses import PairLoss

    def step(loader, optimizer):
        net = torch.nn.Linear(3, 3)
        criterion = PairLoss()
        for x in loader:
            loss = criterion(torch.ones(3), {given})
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(("given", "graph"), [("net", Grad.CARRIES), ("torch.ones(3)", Grad.DETACHED)])
def test_a_loss_that_is_given_the_network_may_run_it(tmp_path: Path, given: str, graph: Grad) -> None:
    write(tmp_path, {"losses.py": PAIR_LOSS, "main.py": USED_LOSS.format(given=given)})
    assert value_of(model_of(tmp_path, "main.py"), "loss").grad is graph
