"""MEM05: models and callers in other files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.mem.projects import linted
from tests.rules.mem.recorded_evaluations import SETUP
from tests.rules.mem.recorded_while_training import WHILE_TRAINING
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source


def test_a_network_out_of_sight_in_a_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    code = SETUP + WHILE_TRAINING["volatile in the midst of training"]
    (tmp_path / "main.py").write_text(code)
    found = linted(tmp_path)
    assert [finding.line for finding in found] == [code[: code.index("# here")].count("\n") + 1]


@pytest.mark.parametrize(
    ("adapts", "count"), [("torch.optim.SGD(self.parameters(), 0.1).step()", 1), ("y.backward()", 0)]
)
def test_a_pass_that_may_train_first_is_no_evaluation(tmp_path: Path, adapts: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "nets").mkdir()
    net = "import torch\n\nclass Net(torch.nn.Linear):\n    def forward_adapted(self, x):\n        y = self(x).sum()\n"
    (tmp_path / "nets" / "net.py").write_text(f"{net}        {adapts}\n        return self(x)\n")
    code = "import torch\n\ndef test(model, x, adapts):\n    if adapts:\n        out = model.forward_adapted(x)\n"
    code += "    else:\n        out = model.forward(x)\n    return out.data.cpu().numpy()\n"
    (tmp_path / "main.py").write_text(code)
    found = linted(tmp_path)
    assert len(found) == count


BASE = """
    import torch

    class Base(torch.nn.Module):
        def __init__(self, count):
            super().__init__()
            self.count = count
    {forward}

        def outputs(self, x):
            self.eval()
            return self(x).cpu()
    """
VALIDATION = """
    import torch
    from lib import Base

    def validate(model: Base, batches: torch.utils.data.DataLoader):
        model.eval()
        return [model(x).sum().item() for x, _ in batches]

    def hits(model: Base, batches: torch.utils.data.DataLoader):
        return sum((model.outputs(x).argmax(1) == y).sum().item() for x, y in batches)
    """


@pytest.mark.parametrize(
    ("forward", "lines"),
    [
        ("", [4, 8]),
        ("    def forward(self, x):\n            raise NotImplementedError", [4, 8]),
        ("    def forward(self, x):\n            return x * self.count", []),  # nothing to train
    ],
)
def test_a_base_class_leaves_its_layers_to_those_that_derive(tmp_path: Path, forward: str, lines: list[int]) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("from .base import Base\n")
    (tmp_path / "lib" / "base.py").write_text(dedent(BASE.format(forward=forward)))
    (tmp_path / "main.py").write_text(dedent(VALIDATION).removeprefix("\n"))
    found = linted(tmp_path)
    assert [finding.line for finding in found] == lines


LOADING = """
    import torch

    class Net(torch.nn.Linear):
        def answers(self, x):
            return self(x).argmax(1)

    def load():
        net, average = Net(2, 2), Net(2, 2)
        {frozen}.requires_grad_(False)
        return net, average
    """
SHOWING = """
    import torch
    from lib import load

    def show(network: torch.nn.Module, batches: torch.utils.data.DataLoader):
        for x in batches:
            print(network.answers(x).tolist())

    def main(batches):
        net, average = load()
        show(average, batches)
    """


@pytest.mark.parametrize(("frozen", "count"), [("average", 0), ("net", 1)])
def test_a_network_comes_frozen_from_the_function_that_makes_it(tmp_path: Path, frozen: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "lib.py").write_text(dedent(LOADING.format(frozen=frozen)))
    (tmp_path / "main.py").write_text(dedent(SHOWING))
    found = linted(tmp_path)
    assert len(found) == count


def test_a_network_whose_class_has_a_small_letter(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "layers.py").write_text("import torch\n\nclass encoder(torch.nn.Linear):\n    pass\n")
    pair = "from torch import nn\nfrom layers import encoder\n\nclass Pair(nn.Module):\n"
    (tmp_path / "pair.py").write_text(f"{pair}    def __init__(self):\n        self.first = encoder(2, 2)\n")
    code = "import torch\nfrom pair import Pair\n\npair = Pair()\npair.load_state_dict(torch.load('pair.pt'))\n"
    code += "for x, _ in torch.utils.data.DataLoader(data):\n    print(pair.first(x).sum().item())\n"
    (tmp_path / "main.py").write_text(code)
    found = linted(tmp_path)
    assert [finding.line for finding in found] == [7]


PHASES = """
    class Trainer:
        def run_epoch(self, phase, batches):
            for x, y in batches:
                loss = self.model(x).mean()
                if phase == "train":
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()
                print(loss.item())

        def __init__(self, model: torch.nn.Module):
            self.model = model
            self.opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def val(self, batches):
            self.run_epoch("val", batches)

        def train(self, batches):
            self.run_epoch("train", batches)
    """


@pytest.mark.parametrize(("switch", "count"), [("with torch.no_grad():", 0), ("if True:", 1)])
def test_a_driver_that_reaches_the_trainer_through_a_table(tmp_path: Path, switch: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "trainer.py").write_text("import torch\n" + dedent(PHASES))
    (tmp_path / "factory.py").write_text("from trainer import Trainer\n\ntrainers = {'box': Trainer}\n")
    driver = f"""
        import torch
        from factory import trainers

        def main(name, model, batches):
            trainer = trainers[name](model)
            trainer.train(batches)
            {switch}
                trainer.val(batches)
        """
    (tmp_path / "main.py").write_text(dedent(driver))
    source = Source.read(tmp_path / "trainer.py")
    assert len(lint(source, Settings.selecting("MEM05", "MEM09"), strict=True, project=Project())) == count


def test_a_loop_in_which_another_file_takes_gradients_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    training = "def improve(model, states):\n    return torch.autograd.grad(model(states).sum(), model.parameters())\n"
    (tmp_path / "improving.py").write_text("import torch\n" + training)
    code = """
        import torch
        from improving import improve

        model = torch.nn.Linear(4, 2)
        model.load_state_dict(torch.load("model.pt"))
        states = torch.randn(8, 4)

        def run(count):
            for _ in range(count):
                print(model(states).sum().item())
                improve(model, states)
        """
    (tmp_path / "main.py").write_text(dedent(code))
    (finding,) = linted(tmp_path)
    assert finding.fix is not None
    start, end = min(edit.start for edit in finding.fix.edits), max(edit.end for edit in finding.fix.edits)
    assert "improve(model" not in dedent(code)[start:end]
    assert not any("improve(model" in edit.text for edit in finding.fix.edits)


def test_a_policy_that_another_file_takes_gradients_of_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "regions.py").write_text(
        "import torch\n"
        "def trust_region_step(policy, states):\n"
        "    return torch.autograd.grad(policy.sample(states).sum(), policy.parameters())\n"
    )
    code = """
        import torch
        from regions import trust_region_step

        policy = torch.nn.Linear(4, 2)
        policy.load_state_dict(torch.load("policy.pt"))

        def sample(states):
            print(policy(states).sum().item())
            return {step}

        for states in batches:
            sample(states)
        """
    for step, function in (("trust_region_step(policy, states)", []), ("len(states)", ["def sample"])):
        (tmp_path / "main.py").write_text(script := dedent(code.format(step=step)))
        settings = Settings.selecting("MEM05", "MEM09")
        found = lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())
        marked = [script[finding.start :].partition("(")[0] for finding in found]
        assert [name for name in marked if name.startswith("def")] == function


def test_a_class_of_another_file_that_runs_itself_when_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "nets.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, size):\n"
        "        super().__init__()\n"
        "        self.body = torch.nn.Linear(size, 2)\n"
        "        self.width = self.body(torch.ones(1, size)).shape[1]\n"
    )
    script = (
        "import torch\nfrom nets import Net\n\ntorch.load('x')\nfor size in range(3):\n    print(net := Net(size))\n"
    )
    (tmp_path / "main.py").write_text(script)
    assert not linted(tmp_path)


@pytest.mark.parametrize(
    ("use", "count"), [("print(best.tolist(), score[0].item())", 1), ("(score.mean()).backward()", 0)]
)
def test_what_becomes_of_a_result_in_another_file(tmp_path: Path, use: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    learner = """
        import torch

        class Learner:
            def __init__(self, net: torch.nn.Module):
                self.net = net

            def fit(self, faces, opt):
                opt.zero_grad()
                self.net(faces).mean().backward()
                opt.step()

            def infer(self, faces, targets):
                found = []
                for face in faces:
                    found.append(self.net(face))
                distance = (torch.stack(found) - targets).pow(2)
                score, best = distance.min(dim=1)
                return best, score
        """
    (tmp_path / "learner.py").write_text(dedent(learner))
    main = f"""
        import torch
        from learner import Learner

        recogniser = Learner(torch.nn.Linear(4, 4))
        for faces, targets in stream:
            best, score = recogniser.infer(faces, targets)
            {use}
        """
    (tmp_path / "main.py").write_text(dedent(main))
    source = Source.read(tmp_path / "learner.py")
    assert len(lint(source, Settings.selecting("MEM05", "MEM09"), strict=True, project=Project())) == count


def test_what_callers_of_its_own_file_hand_in_is_not_what_another_file_does(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    helper = """
        import torch

        def turned(x):
            return torch.transpose(x, 0, 1)

        if __name__ == "__main__":
            rows = torch.arange(6).reshape(2, 3)
            print(turned(rows))
        """
    (tmp_path / "helper.py").write_text(dedent(helper))
    main = """
        import torch
        from helper import turned

        def train(model, loader, optimizer):
            for x, y in loader:
                out = model(x)
                out = turned(out)
                loss = (out - y).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        net = torch.nn.Linear(3, 3)
        train(net, torch.utils.data.DataLoader(data), torch.optim.SGD(net.parameters(), 0.1))
        """
    (tmp_path / "main.py").write_text(dedent(main))
    assert linted(tmp_path) == []


OWN_LOSS = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)

    def forward(self, x):
        return self.linear(x), None

class Criterion(nn.Module):
    def __init__(self, smoothing):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, scores, target):
        return self.smoothing * -scores.gather(dim=-1, index=target).sum()

criterion = Criterion(smoothing=0.1)

def train(batches, model, criterion, scaler, optimizer):
    for batch in batches:
        model.zero_grad()
        scores = torch.log_softmax(model.forward(**batch["net_input"])[0], -1)
        scaler.scale(criterion(scores, batch["target"])).backward()
        scaler.step(optimizer)

model = Net()
criterion = criterion.to("cuda")
train(data, model, criterion, scaler, torch.optim.Adam(model.parameters()))
"""


def test_what_a_loss_of_the_file_is_called_with_does_not_fill_its_self(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text(OWN_LOSS)
    assert linted(tmp_path) == []


def test_a_variable_around_an_inner_function_is_none_of_the_file_that_calls_it(tmp_path: Path) -> None:
    main = """
        import torch

        def in_half(model):
            def run(*args):
                return model(*args).float()
            return run

        @torch.no_grad()
        def noise_like(x):
            return torch.randn_like(x)

        def sample(model, x, steps):
            run = in_half(model)
            for t in steps:
                x = run(x, t).detach() + noise_like(x)
            return x
        """
    draw = """
        import torch
        import main

        def scaled(x):
            return x * 2

        def draw(x, steps):
            x = scaled(x)
            return main.sample(torch.nn.Linear(4, 4), x, steps)
        """
    assert linted(tmp_path, main=main, draw=draw) == []


STEP = """
    from torch import nn

    def step(x, y, net, optimizer, is_training, **options):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        if is_training:
            loss.backward()
            optimizer.step()
        return loss.item()
    """
DRIVER = """
    from lib import step

    def run(net, optimizer, batches, held_out, options):
        net.train()
        for x, y in batches:
            step(x, y, net, optimizer, {training}**options)
        net.eval()
        for x, y in held_out:
            step(x, y, net, optimizer, {evaluation}**options)
    """


@pytest.mark.parametrize(
    ("training", "evaluation", "lines"),
    [
        ("is_training=True, ", "is_training=False, ", [6]),
        ("is_training=True, ", "is_training=True, ", []),
        ("is_training=True, ", "", []),  # the dict may say it
    ],
)
def test_a_flag_that_calls_in_another_file_write_out_beside_a_dict(
    tmp_path: Path, training: str, evaluation: str, lines: list[int]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "lib.py").write_text(dedent(STEP))
    (tmp_path / "main.py").write_text(dedent(DRIVER).format(training=training, evaluation=evaluation))
    found = lint(Source.read(tmp_path / "lib.py"), Settings.selecting("MEM05"), strict=True, project=Project())
    assert [finding.line for finding in found] == lines


TRANSLATOR = """
    import torch
    from torch import nn

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(4, 4), nn.Linear(4, 4)

        def encode(self, x):
            return self.encoder(x)

        def forward(self, x):
            return self.decoder(self.encode(x))

        def greedy(self, x):
            with {context}:
                return self.decoder(self.encode(x)).argmax(-1).tolist()

        def infer(self, x, mode="greedy"):
            if mode == "greedy":
                return self.greedy(x)
    """
SCRIPT = """
    import torch
    from translator import Translator

    def translated(path, sentences):
        model = Translator()
        model.load_state_dict(torch.load(path))
        for sentence in sentences:
            print(model.infer(sentence))
    """


@pytest.mark.parametrize(("context", "lines"), [("torch.no_grad()", []), ("torch.enable_grad()", [5])])
def test_a_method_of_a_class_of_another_file_whose_parts_switch_it_off(
    tmp_path: Path, context: str, lines: list[int]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "translator.py").write_text(dedent(TRANSLATOR).format(context=context))
    (tmp_path / "script.py").write_text(dedent(SCRIPT))
    found = lint(Source.read(tmp_path / "script.py"), Settings.selecting("MEM05"), strict=True, project=Project())
    assert [finding.line for finding in found] == lines
