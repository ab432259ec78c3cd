"""TIME01: calls of functions in other files that may wait for the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

TESTING = """
import torch

def tested(network, batches):
    return judged(network, batches)

def judged(network, batches):
    def answer(x):
        out = network(x)
        return {answer}

    return [answer(x.cuda()) for x in batches]
"""
TIMED_FROM_OUTSIDE = """
import time
import torch
from testing import tested

def main(batches):
    network = torch.nn.Linear(4, 4).to("cuda").eval()
    start = time.time()
    answers = tested(network, batches)
    print(time.time() - start)
    return answers
"""


@pytest.mark.parametrize(("answer", "count"), [("out.argmax().item()", 0), ("out.argmax()", 1)])
def test_what_a_function_of_another_file_calls_may_wait(answer: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "testing.py").write_text(TESTING.format(answer=answer))
    (tmp_path / "main.py").write_text(TIMED_FROM_OUTSIDE)
    settings = Settings.selecting("TIME01")
    assert len(lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())) == count


ROUNDS = """
def tested(network, batches):
    answers = []
    {rounds}:
        x = batches.next()
        answers.append(network(x))
        if batches.done:
            break
    return answers
"""


@pytest.mark.parametrize(("rounds", "count"), [("while True", 0), ("for _ in range(9)", 1)])
def test_a_function_of_another_file_that_goes_over_data_waits(rounds: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "testing.py").write_text(ROUNDS.format(rounds=rounds))
    (tmp_path / "main.py").write_text(TIMED_FROM_OUTSIDE)
    settings = Settings.selecting("TIME01")
    assert len(lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())) == count


LEARNER = """
import torch

class Learner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.solver = torch.optim.Adam(self.layer.parameters())

    def forward(self, x):
        loss = self.layer(x).mean()
        self.solver.zero_grad()
        loss.backward()
        self.solver.step()
        return loss{read}
"""
ONLY_TIMED = """
import time
import torch
from learner import Learner

def main(batches):
    learner = Learner().cuda()
    x = torch.ones(4, 4, device="cuda")
    start = time.time()
    loss = learner(x)
    seconds = time.time() - start
    print(seconds)
    return loss
"""


@pytest.mark.parametrize(("read", "count"), [(".item()", 0), ("", 1)])
def test_a_file_that_only_takes_times_knows_the_networks_it_imports(read: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "learner.py").write_text(LEARNER.format(read=read))
    (tmp_path / "main.py").write_text(ONLY_TIMED)
    settings = Settings.selecting("TIME01")
    assert len(lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())) == count
