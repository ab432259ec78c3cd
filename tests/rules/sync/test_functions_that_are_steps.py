"""Functions of which each call is a training step, a loss or a task, by what they do and by who calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.sync.test_reads_of_a_step import lines_in
from tests.support import findings

AGENT = """
    import torch

    class Agent:
        def __init__(self, critic, device):
            self.critic = critic.to(device)
            self.optimizer = torch.optim.Adam(critic.parameters())
            self.losses = []

        def update(self, states, returns):
            {made}
            loss = torch.nn.functional.mse_loss(critic(states), returns)
            self.optimizer.zero_grad()
            loss.backward()
            {step}
            self.losses.append(loss.item())
"""


@pytest.mark.parametrize(
    ("made", "step", "lines"),
    [
        ("critic = self.critic", "self.optimizer.step()", [15]),
        ("critic = torch.nn.Linear(2, 1).cuda()", "self.optimizer.step()", []),  # as in a test of it
        ("critic = self.critic", "pass", []),
        ("critic = self.critic", "self.optimizer.step(lambda: loss)", []),  # which may call it many times
        ("critic = self.critic\n            for s in states: self.critic(s.cuda())", "self.optimizer.step()", []),
        ("critic = self.critic", "if len(self.losses) % 4 == 0: self.optimizer.step()", [15]),
        ("critic = self.critic", "for _ in range(9): self.optimizer.step()", []),
    ],
)
def test_a_function_that_does_all_of_a_training_step_is_one_though_nobody_calls_it_in_sight(
    made: str, step: str, lines: list[int]
) -> None:
    assert [finding.line for finding in findings(AGENT.format(made=made, step=step), "SYNC01")] == lines


def test_a_test_of_a_step_is_none() -> None:
    code = AGENT.format(made="critic = self.critic", step="self.optimizer.step()")
    assert findings(code.replace("def update", "def test_update"), "SYNC01") == []


def test_a_step_that_is_called_outside_of_loops_is_no_step_of_a_loop() -> None:
    code = AGENT.format(made="critic = self.critic", step="self.optimizer.step()")
    call = """
    agent = Agent(torch.nn.Linear(2, 1), "cuda")
    agent.update(torch.zeros(1, 2), torch.zeros(1, 1))
    """
    assert findings(code + call, "SYNC01") == []


RETURNED = """
    import torch

    def train_batch(model, optimizer, x, y):
        loss = torch.nn.functional.mse_loss(model.cuda()(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {returned}

    {use}
"""


@pytest.mark.parametrize(
    ("returned", "use", "lines"),
    [
        ("loss.item()", "pass", [8]),
        ("len(x), loss.item()", "pass", [8]),
        ("model(x.cuda()).cpu()", "pass", []),
        ("loss.item()", "register(train_batch)", []),
        ("loss.item()", "print(train_batch(*load()))", []),
    ],
)
def test_what_a_step_returns_to_nobody_in_sight_is_for_a_log(returned: str, use: str, lines: list[int]) -> None:
    found = findings(RETURNED.format(returned=returned, use=use), "SYNC01", "SYNC03")
    assert [finding.line for finding in found] == lines


TASKS = """
    import torch

    def meta_step(maml, optimizer, loss_fn, tasks, labels):
        total, hits, device = 0.0, 0.0, "{device}"
        for i in range(tasks.shape[0]):
            learner = maml.clone()
            out = learner(tasks[i].to(device))
            hit = (out.argmax(1) == labels[i].to(device)).float().mean()
            total += loss_fn(out, labels[i].to(device))
            hits += hit.item()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        maml.train()
        return hits
"""


@pytest.mark.parametrize(("device", "lines"), [("cuda", [10]), ("cpu", [])])
def test_the_tasks_of_a_meta_step_are_parts_of_it(device: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(TASKS.format(device=device), "SYNC01")] == lines


FACTORY = """
    import torch

    def make_step(model, optimizer, kept):
        def step(x, y):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()
        {use}
        return step

    def train(model, loader):
        step = make_step(model.cuda(), torch.optim.SGD(model.parameters(), lr=0.1), [])
        total = 0.0
        for x, y in loader:
            total += step(x.cuda(), y.cuda())
        return total
"""


@pytest.mark.parametrize(("use", "lines"), [("pass", [9]), ("kept.append(step)", []), ("register(step)", [])])
def test_a_step_that_a_factory_makes_returns_to_the_loop_that_calls_it(use: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(FACTORY.format(use=use), "SYNC01")] == lines


DICE = """
    import torch
    from torch import nn

    class Dice(nn.Module):
        def __init__(self, classes):
            super().__init__()
            self.classes = classes

        def overlap(self, guess, truth):
            return 2 * torch.sum(guess * truth) / torch.sum(guess + truth)

        def forward(self, guess, truth):
            parts, loss = [], 0.0
            for i in range(self.classes):
                dice = self.overlap(guess[:, i], truth[:, i])
                parts.append(1.0 - dice.item())
                loss += dice
            self.parts = parts
            return loss
"""
TRAINING = """
    import torch
    from main import Dice

    def train(model, loader, optimizer):
        model, dice = model.cuda(), Dice(9)
        {loop}
            loss = dice(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        ("for x, y in loader:", ["parts.append(1.0 - dice.item())"]),
        ("with torch.autograd.set_detect_anomaly(True):", []),
    ],
)
def test_a_loss_that_a_loop_of_another_file_runs_reads_in_every_step(
    tmp_path: Path, loop: str, lines: list[str]
) -> None:
    files = {"main.py": DICE, "train.py": TRAINING.format(loop=loop)}
    assert lines_in(tmp_path, files, "SYNC01") == lines


CHECKED = """
    import torch

    def check(kernel, size):
        points = torch.rand(4, size, requires_grad=True, device="cuda")
        found = kernel(points)
        found.sum().backward()
        assert torch.mean((found - points) ** 2) < 1e-8

    for {target} in {kernels}:
        check(kernel, 3)
"""


@pytest.mark.parametrize(
    ("target", "kernels", "codes"),
    [
        pytest.param("i, kernel", "enumerate([dense, sparse])", [], id="counted"),
        pytest.param("kernel", "(dense, sparse)", [], id="listed"),
        pytest.param("kernel", "torch.utils.data.DataLoader(kernels)", ["SYNC05"], id="drawn"),
    ],
)
def test_a_check_of_a_few_things_that_are_listed_is_no_step(target: str, kernels: str, codes: list[str]) -> None:
    code = CHECKED.format(target=target, kernels=kernels)
    assert [finding.code for finding in findings(code, "SYNC05")] == codes
