"""MEM05: methods of networks of which no call is resolved, but other files call their name."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.mem.projects import linted

WRITER = """
    import torch

    class Writer(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.cell, self.head = torch.nn.GRUCell(size, size), torch.nn.Linear(size, size)

        def forward(self, x, state):
            return self.head(self.cell(x, state))

        def generate(self, state, length):
            words = []
            word = torch.zeros_like(state)
            for _ in range(length):
                state = self.cell(word, state)
                word = torch.nn.functional.one_hot(self.head(state).argmax(1), state.size(1)).float()
                words.append(word)
            return {returned}
    """


@pytest.mark.parametrize(
    ("returned", "caller", "count"),
    [
        ("words", "print(nets[0].generate(start, 9))", 1),
        ("words", "with torch.no_grad():\n    print(nets[0].generate(start, 9))", 0),
        (
            "words",
            "@torch.no_grad()\ndef write(\n    net,\n):\n    print(net.generate(start, 9))\nwrite(nets[0])",
            0,
        ),
        ("words", "print(nets[0](start, start))", 0),
        ("words + [state]", "print(nets[0].generate(start, 9))", 0),
    ],
)
def test_a_network_that_writes_words_is_called_by_name_with_autograd_on(
    tmp_path: Path, returned: str, caller: str, count: int
) -> None:
    """Of an object out of sight, so that all that is known of the call is its name."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "run.py").write_text(f"import torch\nfrom nets import nets, start\n\n{caller}\n")
    (tmp_path / "main.py").write_text(dedent(WRITER.format(returned=returned)))
    assert len(linted(tmp_path)) == count


POLICY = """
    import torch
    from torch.distributions import Categorical

    class Policy:
        def __init__(self, network: torch.nn.Module):
            self.network = network

        def evaluate(self, states, actions):
            logits, values = self.network(states)
            return Categorical(logits=logits).log_prob(actions), values

        def divergence(self, states, actions, others):
            return (others - self.evaluate(states, actions)[0]).mean().item()
    """


@pytest.mark.parametrize(("name", "count"), [("loss_of_batch", 0), ("show", 1)])
def test_what_a_function_for_a_loss_asks_for_is_trained(tmp_path: Path, name: str, count: int) -> None:
    (tmp_path / "run.py").write_text(
        f"class Training:\n    def {name}(self, states, actions):\n"
        "        log_probs, values = self.policy.evaluate(states, actions)\n        return log_probs.mean() + values\n"
    )
    assert len(linted(tmp_path, "MEM05", main=POLICY)) == count
