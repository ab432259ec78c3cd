"""Networks that a training step runs, and through which no gradient goes; and evaluations, which are MEM05's."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
import torch

from tests.support import findings, fixed

STEP = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    online, target = nn.Linear(8, 4), nn.Linear(8, 4)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    batches = [(torch.randn(4, 8), torch.randint(4, (4, 1)), torch.randn(4), torch.randn(4, 8)) for _ in range(3)]
    for i, (state, action, reward, after) in enumerate(batches):
        {step}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
Q_LEARNING = """
best = target(after).max(1)[0].detach()
value = online(state).gather(1, action).squeeze(1)
loss = nn.functional.mse_loss(value, reward + 0.99 * best)
"""


def step(code: str) -> str:
    return dedent(STEP).format(step=dedent(code).strip().replace("\n", "\n    "))


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("a target network", Q_LEARNING, ["MEM09"]),
        (
            "its values under a mask",
            Q_LEARNING.replace("best =", "best = torch.zeros(4); best[reward > 0] ="),
            ["MEM09"],
        ),
        (
            "a teacher",
            """
            wanted = target(state).detach().softmax(1)
            loss = nn.functional.cross_entropy(online(state), wanted)
            """,
            ["MEM09"],
        ),
        (
            "a metric of another network",
            """
            loss = nn.functional.cross_entropy(online(state), action.squeeze(1))
            print(target(state).argmax(1).float().mean().item())
            """,
            ["MEM05"],
        ),
        (
            "samples at intervals",
            """
            loss = nn.functional.cross_entropy(online(state), action.squeeze(1))
            if i % 100 == 0:
                loss_of_other = nn.functional.cross_entropy(target(state).detach(), action.squeeze(1))
                print(loss_of_other.item())
            """,
            ["MEM05"],
        ),
        (
            "what is shown goes by the name of what was trained on",
            """
            out = online(state)
            loss = nn.functional.cross_entropy(out, action.squeeze(1))
            loss.backward()
            out = target(state).argmax(1)
            print((out == action.squeeze(1)).float().mean().item())
            out = online(state)
            loss = nn.functional.cross_entropy(out, action.squeeze(1))
            """,
            ["MEM05"],
        ),
        (
            "a network whose results numpy hands on as tensors",
            """
            import numpy
            loss = nn.functional.mse_loss(numpy.squeeze(target(state)), numpy.swapaxes(online(state), 0, 1).mT)
            """,
            [],
        ),
        ("a target that is trained as well", Q_LEARNING.replace(".detach()", ""), []),
        ("a target under no_grad", Q_LEARNING.replace("best = ", "with torch.no_grad(): best = "), []),
    ],
)
def test_what_is_a_part_of_the_step_and_what_evaluates(name: str, code: str, expected: list[str]) -> None:
    assert [finding.code for finding in findings(step(code), "MEM05", "MEM09")] == expected


def trained(code: str) -> list[torch.Tensor]:
    names: dict[str, Any] = {}
    exec(compile(code, "program", "exec"), names)
    return list(names["online"].parameters())


def test_the_fix_trains_to_the_same_parameters_without_the_graph() -> None:
    before = step(Q_LEARNING)
    after = fixed(before, "MEM09")
    assert "with torch.no_grad():\n        best = target(after).max(1)[0]\n" in after
    assert all(torch.equal(old, new) for old, new in zip(trained(before), trained(after), strict=True))


INPUTS = """
import torch
from core import Module

class Detector(Module):
    def correct(self, x, limit):
        self.eval()
        x = torch.nn.parameter.Parameter(data=x, requires_grad=True)
        optimizer = torch.optim.Adam([x], lr=0.1)
        left = True
        while left:
            self.zero_grad()
            optimizer.zero_grad()
            far = (x - self.forward(x)).sum(1)
            left = bool((far.data > limit).any())
            loss = torch.sum({loss} * (far > limit).int())
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(("loss", "count"), [("self.kept_loss", 0), ("x", 1)])
def test_what_a_pass_leaves_in_the_network_may_be_sent_backward(loss: str, count: int) -> None:
    assert len(findings(INPUTS.format(loss=loss), "MEM09")) == count


ADVERSARIES = """
    import torch
    from torch import nn

    def critic_loss(real, fake):
        {critic}

    def maker_loss(fake):
        {maker}

    def compete(maker, critic, makers, critics, critic_loss, maker_loss, batches):
        for real in batches:
            critics.zero_grad()
            fake = maker(torch.randn(8, 2)).detach()
            error = critic_loss(critic(real), critic(fake))
            error.backward()
            critics.step()
            makers.zero_grad()
            fake = maker(torch.randn(8, 2))
            error = maker_loss(critic(fake))
            error.backward()
            makers.step()

    maker, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    makers, critics = torch.optim.SGD(maker.parameters()), torch.optim.SGD(critic.parameters())
    compete(maker, critic, makers, critics, critic_loss, maker_loss, [torch.randn(8, 2) for _ in range(3)])
"""
DONE = {"critic": "return fake.mean() - real.mean()", "maker": "return -fake.mean()"}
TODO = {"critic": "loss = None  # YOUR CODE\n    return loss", "maker": "loss = None\n    return loss"}


@pytest.mark.parametrize("losses", [DONE, TODO], ids=["done", "to be done"])
def test_a_loss_that_is_yet_to_be_written_sends_back_what_it_is_given(losses: dict[str, str]) -> None:
    """Of an exercise, whose functions return None so far: the generator is trained by one of them."""
    code = dedent(ADVERSARIES).strip().format(**losses)
    assert [code.splitlines()[found.line - 1].strip() for found in findings(code, "MEM09")] == [
        "fake = maker(torch.randn(8, 2)).detach()"
    ]


FILLED = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader


    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(3, 3)

        def forward(self, points):
            {fill}
            return points


    def compute(points, criterion):
        loss = criterion({logits}, {labels}).mean()
        return loss, points


    def train(data):
        loader = DataLoader(data, batch_size=4, pin_memory=True)
        network, criterion = Network().cuda(), nn.CrossEntropyLoss(reduction="none")
        optimizer = torch.optim.Adam(network.parameters())
        for batch in loader:
            batch = batch.to("cuda", non_blocking=True)
            optimizer.zero_grad()
            points = network(batch)
            loss, points = compute(points, criterion)
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("fill", "logits", "labels"),
    [
        ('points["logits"] = self.head(points["x"])', 'points["logits"]', 'points["y"]'),
        ("points.x = self.head(points.x)", "points.x", "points.y"),
    ],
)
def test_a_batch_that_a_network_puts_its_result_into_has_its_graph(fill: str, logits: str, labels: str) -> None:
    code = dedent(FILLED).format(fill=fill, logits=logits, labels=labels)
    assert findings(code, "MEM") == []


def test_a_batch_that_only_gets_parts_of_itself_has_none() -> None:
    code = dedent(FILLED).format(
        fill='points["x"] = points["x"].float()', logits='network_2(points)["x"]', labels='points["y"]'
    )
    code = code.replace("def compute(", "network_2 = nn.Linear(3, 3)\n\n\ndef compute(")
    code = code.replace('network_2(points)["x"]', 'network_2(points["x"])')
    assert [finding.code for finding in findings(code, "MEM")] == ["MEM09"]
