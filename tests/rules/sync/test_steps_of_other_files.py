"""Steps that another file runs in its loop, and models that another file puts on the device."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

TRAINER = """
    import torch

    class Trainer:
        def __init__(self, model, optimizer, device):
            self.model, self.optimizer = model.to(device), optimizer

        def step(self, x, y):
            self.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            return loss.item()

        def judge(self, x, y):
            return torch.nn.functional.mse_loss(self.model(x), y).item()
"""
LOOP = """
    import torch
    from steps import Trainer

    def run(trainer: Trainer, batches, env, log, n):
        {loop}

    def main(model, optimizer, batches, env, log):
        run(Trainer(model, optimizer, "cuda"), batches, env, log, 100)
"""


def lines_of(path: Path, trainer: str, main: str) -> list[int]:
    (path / "pyproject.toml").touch()
    (path / "main.py").write_text(dedent(main))
    (path / "steps.py").write_text(dedent(trainer).lstrip())
    settings = Settings.selecting("SYNC01")
    found = lint(Source.read(path / "steps.py"), settings, strict=True, project=Project())
    return [finding.line for finding in found]


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        ("for x, y in batches: log.append(trainer.step(x, y))", [12]),
        ("for i in range(n): log.append(trainer.step(batches, n))", [12]),
        ("while n: log.append(trainer.step(batches, n))", [12]),
        ("log.append(trainer.step(batches, n))", []),
        ("for x, y in batches: observed, gain = env.step(trainer.step(x, y))", []),
        ("for x, y in batches: log.append(trainer.judge(x, y))", [12, 15]),  # for others, a step
        ("for i in range(n): log.append(trainer.judge(batches, n))", [12]),
        ("while n: log.append(trainer.judge(batches, n))", [12]),
        ("for name in log: log.append(trainer.judge(batches, n))", [12]),
    ],
)
def test_a_loop_of_another_file_that_calls_a_step_is_one_over_steps(
    tmp_path: Path, loop: str, lines: list[int]
) -> None:
    main = LOOP.format(loop=loop).replace("trainer.", "Trainer(batches, n, 'cuda').")
    assert lines_of(tmp_path, TRAINER, main) == lines


ROUNDS = """
    import torch

    class Learner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(2, 2)

        def errors(self, x, y):
            found = [0.0] * 3
            for i in range(3):
                found[i] += torch.nn.functional.mse_loss(self.net(x), y).item()
            return found
"""


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        ("for x, y in batches: log.append(learner.errors(x.cuda(), y.cuda()))", [11]),
        ("for name in names: log.append(learner.errors(batches, names))", []),
        ("log.append(learner.errors(batches, names))", []),
    ],
)
def test_a_loop_of_another_file_gives_the_rounds_of_a_network_a_batch_each(
    tmp_path: Path, loop: str, lines: list[int]
) -> None:
    main = f"from steps import Learner\nlearner = Learner().cuda()\n{loop}\n"
    assert lines_of(tmp_path, ROUNDS, main) == lines


EPOCH = """
    import torch
    from base import Base

    class Judge{base}:
        def __init__(self, model):
            self.model = model

        def epoch(self, batches):
            total = 0.0
            for x, y in batches:
                total += torch.nn.functional.mse_loss(self.model(x), y).item()
            return total

    def judge(model, batches):
        return Judge(model).epoch(batches)
"""


@pytest.mark.parametrize(
    ("base", "lender", "lines"),
    [
        ("", "from steps import judge\nmodel = torch.nn.Linear(2, 2).cuda()\njudge(model, [])\n", [11]),
        ("", "from steps import Judge\nmodel = torch.nn.Linear(2, 2).cuda()\nJudge(model).epoch([])\n", [11]),
        ("", "from steps import judge\nmodel = torch.nn.Linear(2, 2)\njudge(model, [])\n", []),
        ("", "from steps import Judge\nmodel = torch.nn.Linear(2, 2).cuda()\n", []),
        ("(Base)", "", [11]),
    ],
)
def test_a_model_that_another_file_puts_on_the_device_runs_there(
    tmp_path: Path, base: str, lender: str, lines: list[int]
) -> None:
    (tmp_path / "base.py").write_text("import torch\nclass Base:\n    def move(self): self.model.cuda()\n")
    assert lines_of(tmp_path, EPOCH.format(base=base), "import torch\n" + lender) == lines


GIVING_BACK = """
    def epoch(model, optimizer, batches):
        losses = []
        for batch in batches:
            loss, guess = model.judged(batch)
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
        return model, optimizer
"""
COPYING = """
    import torch

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def judged(self, batch):
            x, y = batch
            {move}
            guess = self.layer(x)
            return (guess - y).square().mean(), guess
"""


@pytest.mark.parametrize(
    ("move", "cuda", "lines"),
    [
        ("x, y = x.cuda(), y.cuda()", ".cuda()", [7]),
        ("if self.gpu: x, y = x.cuda(), y.cuda()", ".cuda()", [7]),
        ("pass", "", []),
    ],
)
def test_a_network_that_an_epoch_gives_back_copies_its_batches_by_itself(
    tmp_path: Path, move: str, cuda: str, lines: list[int]
) -> None:
    (tmp_path / "network.py").write_text(dedent(COPYING.format(move=move)))
    main = f"""
        import torch
        from torch.utils.data import DataLoader
        from network import Network
        from steps import epoch
        model = Network(){cuda}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(data, batch_size=8)
        for _ in range(9):
            model, optimizer = epoch(model, optimizer, loader)
    """
    assert lines_of(tmp_path, "import torch\n" + dedent(GIVING_BACK), main) == lines


def test_a_file_that_many_import_is_asked_for_those_that_name_the_function(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"other{number}.py").write_text("import steps\n")
    lender = "import torch\nfrom steps import judge\njudge(torch.nn.Linear(2, 2).cuda(), [])\n"
    assert lines_of(tmp_path, EPOCH.format(base=""), lender) == [11]


def test_what_an_abstract_method_returns_is_not_known() -> None:
    (found,) = findings(
        """
        import abc
        import torch

        class Method(abc.ABC):
            @abc.abstractmethod
            def regularised(self, loss):
                pass

            def epoch(self, model, batches, optimizer):
                total = 0.0
                for x, y in batches:
                    loss = self.regularised(model(x.cuda()).mean())
                    loss.backward()
                    optimizer.step()
                    total += loss.item()
                return total
        """,
        "SYNC01",
    )
    assert found.line == 15


ATTACK = """
    import torch

    def attack(model, x, y):
        delta = torch.zeros_like(x).requires_grad_()
        for _ in range(10):
            torch.nn.functional.cross_entropy(model(x + delta), y).backward()
            delta.data = delta + delta.grad.sign()
        return delta

    def judge(model, batches, optimizer):
        total = 0.0
        for x, y in batches:
            x, y = x.cuda(), y.cuda()
            moved = attack(model, x, y)
            total += torch.nn.functional.cross_entropy(model(x + moved), y).item()
        return total
"""


def test_an_evaluation_that_takes_gradients_of_its_inputs_is_one_over_batches() -> None:
    assert [finding.line for finding in findings(ATTACK, "SYNC01")] == [15]


@pytest.mark.parametrize(("parts", "count"), [("zip(x.chunk(4), y.chunk(4))", 1), ("zip(x.split(4), y.split(4))", 0)])
def test_a_step_over_the_chunks_of_its_batch_is_one_step(parts: str, count: int) -> None:
    code = f"""
    import torch

    def step(model, x, y, optimizer):
        for a, b in {parts}:
            model(a).sub(b).mean().backward()
        optimizer.step()

    def train(model, batches, optimizer, log):
        for x, y in batches:
            x, y = x.cuda(), y.cuda()
            step(model, x, y, optimizer)
            log.append(model(x).sub(y).mean().item())
    """
    assert len(findings(code, "SYNC01")) == count


@pytest.mark.parametrize(
    ("test", "count"),
    [("if loss.item() < 10:", 0), ("if optimizer.ready:", 1)],
)
def test_the_branch_for_batches_of_no_use_runs_seldom(test: str, count: int) -> None:
    code = f"""
    import torch

    def train(model, batches, optimizer):
        for x, y in batches:
            loss = model(x.cuda()).sub(y.cuda()).mean()
            {test}
                loss.backward()
                optimizer.step()
            else:
                print(loss.item())
    """
    lines = [finding.line for finding in findings(code, "SYNC01")]
    assert lines == [10] * count


@pytest.mark.parametrize(("gate", "count"), [("if step % 100 == 0:", 0), ("if True:", 1)])
def test_a_loop_over_the_samples_of_a_batch_at_intervals_runs_seldom(gate: str, count: int) -> None:
    code = f"""
    import torch

    class Trainer:
        def show(self, x):
            found = []
            for i in range(16):
                with torch.no_grad():
                    found.append(self.model(x[i].cuda()).mean().item())
            return found

        def train(self, batches, model):
            self.model = torch.nn.Linear(3, 3).cuda()
            for step, (x, y) in enumerate(batches):
                self.model(x.cuda()).mean().backward()
                {gate}
                    self.show(x)
    """
    assert len(findings(code, "SYNC01")) == count


NETWORK = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.log = []

        def forward(self, x):
            return self.inner(x)

        def loss_of(self, x, y):
            error = (self(x.cuda()) - y.cuda()).square().mean()
            self.log.append(error.item())
            return error
"""
NETWORK_LOOP = """
    import torch
    from steps import Net

    def main(batches, optimizer):
        model = Net().cuda()
        {loop}
"""


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        ("for x, y in batches: model.loss_of(x, y).backward(); optimizer.step()", [15]),
        ("for x, y in batches:\n            if x is y: model.loss_of(x, y).backward(); optimizer.step()", [15]),
        ("for x, y in batches: model(x).backward(); optimizer.step()", []),
        ("for i, (x, y) in enumerate(batches):\n            if i % 50 == 0: model.loss_of(x, y)", []),
        ("model.loss_of(*batches)", []),
    ],
)
def test_a_method_of_a_network_is_part_of_the_step_that_calls_it(tmp_path: Path, loop: str, lines: list[int]) -> None:
    assert lines_of(tmp_path, NETWORK, NETWORK_LOOP.format(loop=loop)) == lines


CRITERIA = """
    import torch

    class Trainer:
        def __init__(self, model, criteria, device):
            self.model = model.to(device)
            self.criteria = torch.nn.ModuleList(criteria)
            self.log = []

        def step(self, x, y):
            out, loss = self.model(x), 0
            for criterion in self.criteria:
                {body}
            loss.backward()
            return loss.detach()
"""


@pytest.mark.parametrize(
    ("body", "loop", "lines"),
    [
        ("part = criterion(out, y); self.log.append(part.item()); loss += part", "for x, y in batches: {call}", [12]),
        ("part = criterion(out, y); self.log.append(part.item()); loss += part", "x, y = batches; {call}", []),
        (
            "part = out.mean(); self.log.append(criterion.weight.mean().item()); loss += part",
            "for x, y in batches: {call}",
            [],
        ),
    ],
)
def test_a_loop_over_criteria_is_part_of_the_step(tmp_path: Path, body: str, loop: str, lines: list[int]) -> None:
    main = LOOP.format(loop=loop.format(call="log.append(trainer.step(x, y))")).replace(
        "Trainer(model, ", "Trainer(model, [], "
    )
    assert lines_of(tmp_path, CRITERIA.format(body=body), main) == lines


BASE = """
    class Base:
        def run(self, batches):
            self.model.to(self.device)
            {loop}

        def process(self, batch):
            raise NotImplementedError

    class Other:
        def run(self, batches):
            for batch in batches:
                self.process(batch)
"""
DERIVED = """
    import torch
    from base import {base}

    class Derived({base}):
        def process(self, batch):
            x, y = batch
            loss = (self.model(x.to(self.device)) - y.to(self.device)).square().mean()
            {then}
            self.losses.append(loss.item())
"""
EACH = "for batch in batches: self.process(batch)"


@pytest.mark.parametrize(
    ("base", "loop", "then", "lines"),
    [
        ("Base", EACH, "loss.backward()", [9]),
        ("Base", EACH, "pass", [9]),
        ("Base", "for number, batch in enumerate(batches): self.process(batch)", "pass", [9]),
        ("Base", "for batch in batches:\n                if batch.number % 9 == 0: self.process(batch)", "pass", []),
        ("Base", "self.process(batches[0])", "loss.backward()", []),
        ("Base", "for name in batches: self.process(self.batch)", "pass", []),
        ("Base", "for batch in batches: self.tool.process(batch)", "loss.backward()", []),
        ("Other", "pass", "loss.backward()", [9]),
        ("object", EACH, "loss.backward()", []),
    ],
)
def test_a_base_class_of_another_file_calls_in_its_loop_what_this_class_puts_in_its_place(
    tmp_path: Path, base: str, loop: str, then: str, lines: list[int]
) -> None:
    (tmp_path / "base.py").write_text(dedent(BASE.format(loop=loop)))
    assert lines_of(tmp_path, DERIVED.format(base=base, then=then), "") == lines


BITS = """
    import torch

    def bits(model: torch.nn.Module, batches, steps):
        total = torch.tensor(0.0, device="cuda")
        batches = iter(batches)
        for _ in range(steps):
            x, y = next(batches)
            total += model(x, y, reduction="none").sum()
        return total.item()

    def bits_of_batch(model: torch.nn.Module, batch, steps):
        total = torch.tensor(0.0, device="cuda")
        total += model(batch[0], batch[1], reduction="none").sum()
        return total.item()
"""


@pytest.mark.parametrize(("name", "count"), [("bits", 0), ("bits_of_batch", 1)])
def test_a_function_that_goes_over_the_batches_itself_reads_once_for_all(tmp_path: Path, name: str, count: int) -> None:
    main = f"""
        from steps import {name}

        def main(model, parts):
            for part in parts:
                loader = load(part)
                print({name}(model, loader, 9))
    """
    assert len(lines_of(tmp_path, BITS, main)) == count
