"""MEM05: whoever calls an evaluation decides, and what it returns may be trained on behind other files and tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mem.projects import found_in
from tests.support import findings

STEPS = """
    import torch

    class Tutor:
        def __init__(self, model, loss, optimizer):
            self.model, self.loss, self.optimizer = model, loss, optimizer
            self.learn, self.score = self.make_learn(), self.make_score()

        def make_learn(self):
            def learn(x, y):
                loss = self.loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                return loss.item()
            return learn

        def make_score(self):
            def score(x, y):
                self.model.eval()
                return self.loss(self.model(x), y).item()
            return score

        def once(self, loader, held_out=False):
            step = self.score if held_out else self.learn
            return [step(x, y) for x, y in loader]

        def epoch(self, train_loader, val_loader):
            self.once(train_loader)
            with {switch}:
                return self.once(val_loader, held_out=True)
    """


@pytest.mark.parametrize(("switch", "count"), [("torch.no_grad()", 0), ("torch.profiler.profile()", 1)])
def test_a_step_that_is_chosen_where_gradients_are_off(switch: str, count: int) -> None:
    assert len(findings(STEPS.format(switch=switch), "MEM05", "MEM09")) == count


BASE = """
    import torch

    class Base:
        def start(self, batches, held_out):
            for batch, other in zip(batches, held_out):
                self.train_step(batch)
                with {switch}:
                    print(self.eval_step(other))
    """
DERIVED = """
    import torch
    from base import Base

    net = torch.nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)

    class Regression(Base):
        def run(self, batch, learns=True):
            loss = net(batch["x"]).pow(2).mean()
            if learns:
                loss.backward()
                opt.step()
                opt.zero_grad()
            return loss.item()

        def train_step(self, batch):
            return self.run(batch)

        def eval_step(self, batch):
            net.eval()
            score = self.run(batch, learns=False)
            net.train()
            return score

    Regression().start([], [])
    """


@pytest.mark.parametrize(("switch", "count"), [("torch.no_grad()", 0), ("torch.profiler.profile()", 1)])
def test_a_base_of_another_file_switches_gradients_off(tmp_path: Path, switch: str, count: int) -> None:
    assert len(found_in(tmp_path, base=BASE.format(switch=switch), main=DERIVED)) == count


FLOW = """
    import numpy as np
    import torch
    from couplings import Couplings

    class Flow(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.couplings = Couplings()

        def forward(self, x):
            x, s = self.couplings.run(x)
            return x, s

    class Likelihood(torch.nn.Module):
        def forward(self, z, s):
            return {loss}
    """
TRAINED_FLOW = """
    import torch
    from flow import Flow, Likelihood

    def train(net, opt, criterion, batches):
        for x in batches:
            opt.zero_grad()
            z, s = net(x)
            loss = criterion(z, s)
            {after}

    def main():
        net = Flow()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for epoch in range(9):
            train(net, opt, Likelihood(), torch.utils.data.DataLoader([torch.randn(4) for _ in range(99)], 9))

    main()
    """


@pytest.mark.parametrize(
    ("loss", "after", "count"),
    [
        pytest.param("(0.5 * (z**2 + np.log(2 * np.pi)) - s).mean()", "loss.backward()", 0, id="a tensor"),
        pytest.param("np.mean(z.detach().numpy() ** 2 + np.log(2))", "print(loss)", 1, id="an array"),
    ],
)
def test_what_is_not_known_plus_a_number_of_numpy(tmp_path: Path, loss: str, after: str, count: int) -> None:
    flow, main = FLOW.format(loss=loss), TRAINED_FLOW.format(after=after)
    assert len(found_in(tmp_path, flow=flow, main=main)) == count


LAYERS = """
    import torch
    from torch import nn

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = nn.ModuleList([nn.Linear(2, 2) for _ in range(4)])

        def inverse(self, z):
            for i in range(len(self.shift)):
                z = z - self.shift[i](z)
            return z

        def sample(self, count):
            return self.inverse(torch.randn(count, 2))

        def forward(self, x):
            for layer in self.shift:
                x = x + layer(x)
            return x

    flow = Flow()
    opt = torch.optim.Adam(flow.parameters())
    for step in range(9):
        flow(torch.randn(8, 2)).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
    """


@pytest.mark.parametrize(
    ("use", "count"),
    [
        ("print(flow.sample(9).detach().numpy())", 0),
        ("for _ in range(99):\n        print(flow.sample(9).detach().numpy())", 1),
    ],
)
def test_one_layer_after_the_other_is_one_pass(use: str, count: int) -> None:
    assert len(findings(LAYERS + use + "\n", "MEM05", "MEM09")) == count


SAMPLED = """
    import torch
    from weights import averaged

    def spread(batches):
        net = averaged()
        net.load_state_dict(torch.load("net.pt"))
        net.eval()
        for scale in (0.1, 0.2, 0.5):
            {use}
            with torch.no_grad():
                print(sum(net(x).item() for x in batches))
    """


@pytest.mark.parametrize(("use", "count"), [("net.sample(scale)", 0), ("print(net.sample(scale).item())", 1)])
def test_a_method_whose_result_nobody_takes_is_no_pass(use: str, count: int) -> None:
    assert len(findings(SAMPLED.format(use=use), "MEM05", "MEM09")) == count


VECTORS = """
    import torch

    def scales(net, x):
        found = 0
        for scale in (1, 2, 4):
            found += net(x * scale).cpu().data
        return found

    def vectors(net, batches):
        net.eval()
        with {switch}:
            return [scales(net, x) for x in batches]
    """
USER = """
    import torch
    from main import scales

    net = torch.load("net.pt")
    net.eval()
    print(scales(net, torch.ones(4)))
    """


@pytest.mark.parametrize(("switch", "count"), [("torch.no_grad()", 0), ("torch.profiler.profile()", 1)])
def test_a_helper_whose_file_switches_gradients_off(tmp_path: Path, switch: str, count: int) -> None:
    assert len(found_in(tmp_path, main=VECTORS.format(switch=switch), user=USER)) == count


DECODING = """
    import torch
    from torch import nn

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x)

        def generate(self, x):
            found = []
            for step in range(9):
                x = self.layer(x)
                found.append(x.argmax(1))
            return found

    class Translator({base}):
        def __init__(self):
            super().__init__()
            self.decoder = Decoder()

        def forward(self, x):
            return self.decoder(x), self.decoder.generate(x)
    """


@pytest.mark.parametrize(("base", "count"), [("nn.Module", 0), ("object", 1)])
def test_a_part_that_another_network_runs(base: str, count: int) -> None:
    assert len(findings(DECODING.format(base=base), "MEM05", "MEM09")) == count


CASES = """
    import unittest
    import torch

    class Checks({base}):
        def setUp(self):
            self.net = torch.nn.Linear(4, 2)

        def test_shape(self):
            out = self.net(torch.randn(3, 4))
            self.assertEqual(out.shape, (3, 2))
    """


@pytest.mark.parametrize(("base", "count"), [("unittest.TestCase", 0), ("unittest.TestResult", 1)])
def test_a_case_of_tests_in_whatever_file(base: str, count: int) -> None:
    assert len(findings(CASES.format(base=base), "MEM05", "MEM09")) == count


ZOO = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x)

    def net18({option}=False):
        model = Net()
        if {option}:
            model.load_state_dict(torch.hub.load_state_dict_from_url("https://example.org/net18.pt"))
        return model

    def test():
        model = net18()
        for _ in range(2):
            print(model(torch.randn(2, 4)).size())
    """


@pytest.mark.parametrize(("option", "count"), [("pretrained", 0), ("resume", 1)])
def test_weights_for_those_who_ask_for_them(option: str, count: int) -> None:
    assert len(findings(ZOO.format(option=option), "MEM05", "MEM09")) == count


RUNNER = """
    import torch

    class Runner:
        def __init__(self, model, batches):
            self.model, self.batches = model, batches

        def run(self, score):
            self.model.eval()
            results = []
            for batch in self.batches:
                with {mode}:
                    results.append(score(self.model, batch))
            return results
"""
SCORED = """
    import torch
    from lib import Runner

    def main(net: torch.nn.Module, batches: torch.utils.data.DataLoader):
        def score(net, batch):
            x, y = batch
            return (net(x).argmax(1) == y).float().mean()

        print(Runner(net, batches).run(score))
"""


@pytest.mark.parametrize(("mode", "count"), [("torch.no_grad()", 0), ("torch.autograd.profiler.profile()", 1)])
def test_a_function_that_another_file_runs_without_gradients(tmp_path: Path, mode: str, count: int) -> None:
    assert len(found_in(tmp_path, main=SCORED, lib=RUNNER.replace("{mode}", mode))) == count


SWITCHED = """
    import torch

    def train(nets, opt, batches):
        for x, y in batches:
            opt.zero_grad()
            torch.nn.functional.cross_entropy(nets[0](x), y).backward()
            opt.step()

    def report(encoder: torch.nn.Linear, head: torch.nn.Linear, x, y):
        changed = []
        for net in [encoder, head]:
            for weight in net.parameters():
                if weight.requires_grad:
                    weight.requires_grad = {state}
                    changed.append(weight)
        out = head(encoder(x))
        print((out.argmax(1) == y).sum().item())
        for weight in changed:
            weight.requires_grad = True

    def main(nets, opt, epochs, batches, x, y):
        for epoch in range(epochs):
            train(nets, opt, batches)
            nets[0].eval()
            report(*nets, x, y)
"""


@pytest.mark.parametrize(("state", "count"), [("False", 0), ("True", 2)])
def test_parameters_that_are_switched_off_for_a_while(state: str, count: int) -> None:
    assert len(findings(SWITCHED.replace("{state}", state), "MEM05")) == count


def test_a_new_tensor_that_wants_no_gradient_switches_no_parameter() -> None:
    made = "weight.requires_grad = {state}\n                    changed.append(weight)"
    code = SWITCHED.replace(made, "changed.append(torch.zeros(2, requires_grad=False))")
    assert len(findings(code, "MEM05")) == 2


EMBEDDER = """
    import torch

    class Embedder(torch.nn.Module):
        def forward(self, text):
            return self.{method}(text)
"""
WORDS = """
    import torch
    from lib import Embedder

    class Words(Embedder):
        def __init__(self):
            super().__init__()
            self.letters = torch.nn.EmbeddingBag(100, 4)

        def of_word(self, word):
            return self.letters(word)

        def embed(self, text):
            return torch.cat([self.of_word(word) for word in text])

    if __name__ == "__main__":
        words = torch.load("words.pt")
        for text in torch.utils.data.DataLoader([]):
            print(Words().embed(text))
"""


@pytest.mark.parametrize("method", ["embed", "encode"])
def test_a_part_of_the_pass_of_a_base_in_another_file(tmp_path: Path, method: str) -> None:
    assert found_in(tmp_path, main=WORDS, lib=EMBEDDER.format(method=method)) == ["print(Words().embed(text))"]


@pytest.mark.parametrize(("result", "line"), [("encode(x).mean().item()", 14), ("measure(x)", 11)])
def test_those_who_get_a_graph_from_a_method_of_a_network_need_it_or_not(result: str, line: int) -> None:
    code = f"""
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

            def encode(self, x):
                return self.second(torch.relu(self.first(x)))

            def measure(self, x):
                return self.second(torch.relu(self.first(x))).mean().item()

        def evaluate(net: Net, loader):
            total = 0
            for x in loader:
                total += net.{result}
            return total
        """
    assert [finding.line for finding in findings(code, "MEM05")] == [line]
