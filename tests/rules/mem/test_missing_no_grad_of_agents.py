"""MEM05: methods that run the network of an agent, which another method trains, and callers in other files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source


def found(tmp_path: Path, agent: str, driver: str) -> list[str]:
    """The lines of the agent's file that have a finding."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "agent.py").write_text(dedent(agent))
    (tmp_path / "registry.py").write_text("import agent\n\nmake_agent = {'plain': agent}.get\n")
    (tmp_path / "main.py").write_text(dedent(driver))
    source = Source.read(tmp_path / "agent.py")
    findings = lint(source, Settings.selecting("MEM05"), strict=True, project=Project())
    return [source.text.splitlines()[finding.line - 1].strip() for finding in findings]


AGENT = """
    import torch

    class Agent:
        def __init__(self, actor: torch.nn.Module):
            self.actor = actor
            self.opt = torch.optim.Adam(actor.parameters())

        def act(self, state):
            scores = self.actor(torch.as_tensor(state))
            return {read}

        def learn(self, states, rewards):
            self.opt.zero_grad()
            (self.actor(states).amax(1) * rewards).mean().backward()
            self.opt.step()
    """
DRIVER = """
    import torch
    from registry import make_agent

    def main(env, name):
        agent = make_agent(name)
        state = env.reset()
        {around}
            state = env.step(agent.act({given}))
        agent.learn(*env.history())
    """


@pytest.mark.parametrize(
    ("around", "read", "lines"),
    [
        ("while True:", "scores.argmax().item()", ["def act(self, state):"]),
        ("with torch.no_grad():", "scores.argmax().item()", []),
        ("while True:", "torch.distributions.Categorical(logits=scores)", []),
    ],
)
def test_what_acts_for_callers_out_of_sight(tmp_path: Path, around: str, read: str, lines: list[str]) -> None:
    driver = DRIVER.format(around=around, given="state")
    assert found(tmp_path, AGENT.format(read=read), driver) == lines


@pytest.mark.parametrize(
    ("tied", "lines"),
    [
        ("self.actor.body.copy_from(actor)", ["def act(self, state):"]),
        ("self.penalty = self.actor.body.penalty(actor)", []),
    ],
)
def test_a_network_out_of_sight_that_is_told_something(tmp_path: Path, tied: str, lines: list[str]) -> None:
    """What it may keep of a pass is nothing that anybody reads."""
    agent = AGENT.format(read="scores.argmax().item()").replace(
        "        self.actor = actor\n", f"        self.actor = actor\n            {tied}\n"
    )
    assert found(tmp_path, agent, DRIVER.format(around="while True:", given="state")) == lines


@pytest.mark.parametrize(
    ("read", "lines"),
    [("to_numpy(scores)", ["def act(self, state):"]), ("to_half(scores)", [])],
)
def test_an_agent_that_is_a_module_and_trains_itself(tmp_path: Path, read: str, lines: list[str]) -> None:
    """What a function of another file makes of the result is known in its methods, as it is not in those of others."""
    (tmp_path / "arrays.py").write_text(
        "def to_numpy(tensor):\n    return tensor.to('cpu').detach().numpy()\n\ndef to_half(x):\n    return x / 2\n"
    )
    agent = AGENT.format(read=read).replace("class Agent:", "class Agent(torch.nn.Module):")
    agent = agent.replace("import torch\n", "import torch\n    from arrays import to_half, to_numpy\n", 1)
    agent = agent.replace("self.actor = actor", "super().__init__(); self.actor = actor")
    assert found(tmp_path, agent, DRIVER.format(around="while True:", given="state")) == lines


def test_a_method_that_nobody_calls_is_left_alone(tmp_path: Path) -> None:
    assert found(tmp_path, AGENT.format(read="scores.argmax().item()"), "import agent\n") == []


def test_the_mode_switch_of_another_object_is_no_call_of_a_method_of_the_same_name(tmp_path: Path) -> None:
    agent = AGENT.format(read="scores.argmax().item()").replace("def act(", "def eval(")
    driver = DRIVER.replace("agent.act(", "agent.eval(") + "    with torch.no_grad():\n            {net}\n"
    assert found(tmp_path, agent, driver.format(around="while True:", given="state", net="name.eval()")) == [
        "def eval(self, state):"
    ]
    assert found(tmp_path, agent, driver.format(around="while True:", given="state", net="agent.eval(state)")) == []


@pytest.mark.parametrize(("around", "count"), [("for states in rollout:", 1), ("with torch.no_grad():", 0)])
def test_a_function_that_another_file_calls_again_and_again(tmp_path: Path, around: str, count: int) -> None:
    rewards = """
        import torch

        predictor = torch.nn.Linear(4, 4)
        predictor.load_state_dict(torch.load("predictor.pt"))

        def novelty(states):
            return predictor(states).pow(2).mean(1).detach().numpy()
        """
    driver = f"""
        import torch
        from agent import novelty

        {around}
            print(novelty(torch.ones(8, 4)))
        """
    assert len(found(tmp_path, rewards, driver)) == count


@pytest.mark.parametrize(("use", "lines"), [("update(loss)", []), ("eval()", ["def learn(self, states):"])])
def test_a_network_out_of_sight_that_is_told_to_train_on_a_loss(tmp_path: Path, use: str, lines: list[str]) -> None:
    agent = f"""
        from torch.nn import functional as F
        from players import Critic

        class Agent:
            def __init__(self):
                self.critic = Critic()

            def learn(self, states):
                loss = F.mse_loss(self.critic(states), states)
                self.critic.{use}
                return loss.item()
        """
    driver = """
        from agent import Agent

        agent = Agent()
        for states in stream():
            print(agent.learn(states))
        """
    assert found(tmp_path, agent, driver) == lines


POLICY = """
    import torch

    class Policy:
        def __init__(self):
            self.net = torch.nn.Linear(4, 2)
            self.opt = torch.optim.Adam(self.net.parameters())

        def __call__(self, states):
            return self.net(states)

        def choose(self, state):
            return self.net(torch.as_tensor(state)){end}

        def update(self, loss):
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
    """


@pytest.mark.parametrize(
    ("end", "read", "count"),
    [(".detach().numpy()", "np.clip({} + np.ones(2), -1, 1)", 0), (".detach()", "{}.argmax().item()", 1)],
)
def test_the_method_that_makes_an_array_is_the_one_to_switch_off(
    tmp_path: Path, end: str, read: str, count: int
) -> None:
    agent = f"""
        import numpy as np
        import torch
        from policy import Policy

        class Agent:
            def __init__(self):
                self.player = Policy()

            def act(self, state):
                action = self.player.choose(state)
                return {read.format("action")}

            def learn(self, states):
                self.player.update(-self.player(states).mean())
        """
    driver = """
        from agent import Agent

        agent = Agent()
        for state in stream():
            print(agent.act(state))
        """
    (tmp_path / "policy.py").write_text(dedent(POLICY).format(end=end))
    assert len(found(tmp_path, agent, driver)) == count


EPISODE = """
    import torch
    {library}

    class Agent(torch.nn.Module):
        def __init__(self, env):
            super().__init__()
            self.env = env
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x)

        def evaluate(self, steps=99):
            total, state = 0.0, self.env.reset()
            for _ in range(steps):
                state, reward, done, _ = {step}
                total += reward
            return total

    def search(agent, tries=9):
        return max(agent.evaluate() for _ in range(tries))

    search(Agent(make()))
    """


@pytest.mark.parametrize(
    ("library", "step", "lines"),
    [
        ("from gym import make", "self.env.step(self.forward(state))", [13]),
        ("from gymnasium import make", "self.env.step(self.forward(state))", [13]),
        ("from brax import make", "self.env.step(self.forward(state))", []),
        ("from gym import make", "self.env.push(self.forward(state))", []),
        ("from gym import make", "self.model.step(self.forward(state))", []),
    ],
)
def test_an_environment_takes_numbers(library: str, step: str, lines: list[int]) -> None:
    code = EPISODE.format(library=library, step=step)
    assert [finding.line for finding in findings(code, "MEM05", "MEM09")] == lines


BASE = """
    class Base:
        def act(self, state):
            raise NotImplementedError

        def learn(self, batch):
            raise NotImplementedError

        def play(self, state):
            total = 0
            while state is not None:
                state, reward = self.env.advance(self.act(state))
                total += reward
            return total

        def score(self, states):
            return [self.play(state) for state in states]

        def train(self, batches):
            for batch in batches:
                self.learn(batch)
    """
PLAYER = """
    import torch
    from registry import Base

    class Player(Base):
        def __init__(self, actor: torch.nn.Module):
            self.actor, self.critic = actor, torch.nn.Linear(4, 1)
            self.opt = torch.optim.Adam(actor.parameters())

        def act(self, state):
            scores = self.actor(torch.as_tensor(state))
            return scores.argmax().item()

        def learn(self, batch):
            wanted = self.critic(batch).detach()
            loss = (self.actor(batch) - wanted).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
    """


@pytest.mark.parametrize(
    ("driver", "lines"),
    [
        ("print(player.score(states))", ["def act(self, state):"]),
        ("with torch.no_grad():\n    print(player.score(states))", []),
        ("with torch.no_grad():\n    print(player.act(states[0]))\nprint(player.score(states))", []),
        ("player.train(states)", []),  # who plays is out of sight
    ],
)
def test_a_base_of_another_file_that_is_only_called_with_autograd_on(
    tmp_path: Path, driver: str, lines: list[str]
) -> None:
    (tmp_path / "base.py").write_text(dedent(BASE))
    code = PLAYER.replace("from registry", "from base")
    assert found(tmp_path, code, f"import torch\nplayer, states = make()\n{driver}\n") == lines


@pytest.mark.parametrize(("step", "count"), [("loss.backward()", 1), ("update(loss)", 0)])
def test_a_step_that_a_base_of_another_file_calls_has_gradients(tmp_path: Path, step: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "base.py").write_text(dedent(BASE))
    code = dedent(PLAYER).replace("from registry", "from base").replace("loss.backward()", step)
    code += "\n    def begin(self, batches):\n        for batch in batches:\n            self.learn(batch)\n"
    (tmp_path / "agent.py").write_text(code)
    source = Source.read(tmp_path / "agent.py")
    report = lint(source, Settings.selecting("MEM09"), strict=True, project=Project())
    assert ["wanted" in source.line(each.line) for each in report] == [True] * count
