"""What loops are there for, and what a training step is."""

from __future__ import annotations

import pytest

from tests.semantics.programs import TRAINING_LOOP, model_of
from torchlint.semantics.entities import Role


def test_loops_have_roles() -> None:
    assert [loop.role for loop in model_of(TRAINING_LOOP).loops] == [Role.EPOCHS, Role.STEPS, Role.EVALUATION]


def test_a_loop_over_a_helper_that_runs_the_whole_epoch_is_an_epoch_loop() -> None:
    model = model_of(
        """
        import torch
        def train(net, loader, opt):
            for x in loader:
                loss = net(x).sum()
                loss.backward()
                opt.step()
        for epoch in range(9):
            train(net, loader, opt)
        """
    )
    roles = {loop.function.qualname: loop.role for loop in model.loops}
    assert roles == {"train": Role.STEPS, "": Role.EPOCHS}


@pytest.mark.parametrize("run", ["out = net(x)", "out = [net(x) for net in nets]"], ids=["a loop", "a comprehension"])
def test_a_loop_over_the_models_of_an_ensemble_is_part_of_an_evaluation(run: str) -> None:
    inner = f"for k, net in enumerate(nets):\n                    {run}" if "for" not in run else run
    model = model_of(
        f"""
        import torch
        def evaluate(nets, batches, device):
            for x, y in batches:
                x = x.to(device)
                {inner}
        """
    )
    assert [loop.role for loop in model.loops] == [Role.EVALUATION, Role.MODULES]


@pytest.mark.parametrize(("given", "role"), [("g", Role.STEPS), ("g, x, w, v, 1, 2", Role.ELEMENTS)])
def test_the_formula_of_a_kernel_is_no_backward_pass(given: str, role: Role) -> None:
    code = f"import torch\nimport kernels.conv as conv\nfor i in range(9):\n    conv.backward({given})\n"
    assert [loop.role for loop in model_of(code).loops] == [role]


NETWORK = """
import torch

class Net(torch.nn.Module):
    def {name}(self, batches):
        {first}
        for x, y in batches:
            out = self.layers(x)
"""


@pytest.mark.parametrize(
    ("name", "first", "role"),
    [
        ("evaluate", "self.layers.eval()", Role.EVALUATION),
        ("fit", "self.train()", Role.EVALUATION),
        ("multiscale", "self.layers.eval()", Role.PLAIN),
        ("forward", "pass", Role.PLAIN),
    ],
)
def test_a_method_of_a_network_that_switches_its_mode_goes_over_data(name: str, first: str, role: Role) -> None:
    code = NETWORK.format(name=name, first=first).replace(
        "class Net(torch.nn.Module):",
        "class Net(torch.nn.Module):\n    def __init__(self):\n        "
        "super().__init__()\n        self.layers = torch.nn.Linear(2, 2)\n",
    )
    assert [loop.role for loop in model_of(code).loops] == [role]


def test_a_step_spread_over_methods_is_one_step() -> None:
    model = model_of(
        """
        import torch
        class Trainer:
            def __init__(self, net):
                self.net = net
                self.optimizer = torch.optim.Adam(net.parameters())
            def reset(self):
                self.optimizer.zero_grad()
            def step(self, x):
                self.reset()
                loss = self.net(x).mean()
                loss.backward()
                self.optimizer.step()
                return loss
            def fit(self, loader):
                for x in loader:
                    self.step(x)
        """
    )
    loop = model.loops[0]
    effects = model.effects(loop)
    assert loop.role is Role.STEPS
    assert len(effects.backward) == len(effects.zero_grads) == len(effects.optimizer_steps) == 1


@pytest.mark.parametrize(
    ("indices", "role"),
    [
        ("range(0, len(x), size)", Role.EVALUATION),
        ("range(0, len(x), 32)", Role.EVALUATION),
        ("range(0, len(x), 1)", Role.ELEMENTS),
        ("range(len(x), 0, -1)", Role.ELEMENTS),
        ("range(0, len(x))", Role.ELEMENTS),
    ],
)
def test_a_range_with_a_stride_is_one_of_batches_where_a_model_runs_at_each_index(indices: str, role: Role) -> None:
    model = model_of(
        f"""
        import torch
        def evaluate(net: torch.nn.Module, x, size):
            for i in {indices}:
                out = net(x[i : i + size])
            for i in range(0, len(x), size):
                print(x[i])
        """
    )
    assert [loop.role for loop in model.loops] == [role, Role.ELEMENTS]


def test_a_loop_that_draws_its_batches_by_hand_is_an_evaluation() -> None:
    code = """\
def judge(model: torch.nn.Module, batches, steps):
    batches = iter(batches)
    for _ in range(steps):
        x, y = DRAWN
        print(model(x))
"""
    for drawn, role in (("next(batches)", Role.EVALUATION), ("torch.ones(3), 1", Role.ELEMENTS)):
        [loop] = model_of(f"import torch\n{code.replace('DRAWN', drawn)}").loops
        assert loop.role is role


def test_a_loop_over_whole_evaluations_is_one_over_epochs() -> None:
    code = """\
import torch

def judge(model: torch.nn.Module, batches):
    for x in batches:
        print(model(x))

def judge_one(model: torch.nn.Module, x):
    print(model(x))

def main(model: torch.nn.Module, tasks):
    for task in tasks:
        JUDGE(model, task)
"""
    for name, role in (("judge", Role.EPOCHS), ("judge_one", Role.EVALUATION)):
        model = model_of(code.replace("JUDGE", name))
        assert [loop.role for loop in model.loops if loop.function.name == "main"] == [role]


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("for real, _ in train_loader:", Role.STEPS),
        ("for i, (real, _) in enumerate(tqdm(dataloader)):", Role.STEPS),
        ("for real, _ in loaders:", Role.EPOCHS),
        ("for i, real in enumerate(loader):", Role.EPOCHS),
    ],
)
def test_a_batch_that_several_inner_steps_share_is_no_epoch(header: str, role: Role) -> None:
    model = model_of(
        f"""
        import torch
        from tqdm import tqdm
        def train(net, train_loader, dataloader, loader, loaders, opt, rounds):
            {header}
                for _ in range(rounds):
                    net(real).sum().backward()
                    opt.step()
        """
    )
    assert [loop.role for loop in model.loops] == [role, Role.STEPS]


@pytest.mark.parametrize(
    ("over", "role"),
    [
        ("for i, (x, name) in enumerate(self.valid_loader):", Role.EVALUATION),
        ("for x, name in tqdm(valid_dataloader):", Role.EVALUATION),
        ("for x, name in self.speakers:", Role.EPOCHS),
        ("for name, x in loaders.items():", Role.EPOCHS),
        ("for name, x in [('large', torch.utils.data.DataLoader(self.large, 8))]:", Role.EPOCHS),
        ("for x in torch.utils.data.DataLoader(self.large, 8):", Role.EVALUATION),
        ("for i, (x, y) in enumerate(torch.utils.data.DataLoader(self.large, 8)):", Role.EVALUATION),
    ],
)
def test_a_batch_that_a_model_takes_in_chunks_is_a_batch(over: str, role: Role) -> None:
    model = model_of(
        f"""
        import torch
        class Tester:
            def test(self, net, loaders, valid_dataloader):
                {over}
                    parts = split(self.scaled(x))
                    for part in parts:
                        out = net(part)
        """
    )
    assert [loop.role for loop in model.loops] == [role, Role.EVALUATION]


@pytest.mark.parametrize(
    ("over", "role"),
    [("self.parts(x)", Role.EVALUATION), ("range(0, 90, 10)", Role.EVALUATION), ("self.times", Role.EPOCHS)],
)
def test_what_a_model_makes_of_a_batch_in_many_passes_is_no_part_of_it(over: str, role: Role) -> None:
    model = model_of(
        f"""
        class Sampler:
            def sample(self, net, valid_loader):
                for x, name in valid_loader:
                    for t in {over}:
                        x = net(x, self.step(t))
        """
    )
    assert [loop.role for loop in model.loops] == [role, Role.EVALUATION]


def test_a_round_that_has_a_loader_of_its_own_is_a_pass() -> None:
    model = model_of(
        """
        from torch.utils.data import DataLoader
        def evaluate(net, batches):
            for x in batches:
                net(x)
        def all_parts(net, parts):
            settings = []
            for part in parts:
                settings.append(("held out", DataLoader(part)))
            for name, loader in settings:
                evaluate(net, loader)
        """
    )
    assert model.loops[-1].role is Role.EPOCHS


@pytest.mark.parametrize(
    ("made", "role"),
    [
        ("zoo.Net.from_pretrained(name)", Role.EPOCHS),
        ("zoo.Tokenizer.from_pretrained(name)", Role.EVALUATION),
        ("restored(name)", Role.EPOCHS),
        ("zoo.read(name)", Role.EVALUATION),
    ],
)
def test_a_round_that_loads_its_network_is_no_batch(made: str, role: Role) -> None:
    model = model_of(
        f"""
        import torch
        import zoo

        def restored(name):
            other = zoo.Net()
            other.load_state_dict(torch.load(name))
            return other

        def compare(net: torch.nn.Module, names, x):
            for name in names:
                loaded = {made}
                print(name, net(x), loaded)
        """
    )
    assert [loop.role for loop in model.loops] == [role]
