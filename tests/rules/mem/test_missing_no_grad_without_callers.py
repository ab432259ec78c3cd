"""MEM05: a function that only calls itself gives its result to whoever takes it; what it may run is out of sight."""

from __future__ import annotations

import pytest

from tests.support import findings

CHOPPED = """
import torch

def chop(net, x, size=100):
    b, c, h, w = x.size()
    half = h // 2
    parts = [x[:, :, :half], x[:, :, half:]]
    if w * half < size:
        found = []
        for i in range(2):
            found.extend(net(torch.cat(parts[i : i + 1], dim=0)).chunk(1, dim=0))
    else:
        found = [chop(net, part, size=size) for part in parts]
    output = x.new(b, c, h, w)
    output[:, :, :half] = found[0]
    output[:, :, half:] = found[1]
    return output
"""
SHOWN = """
def show(net, images):
    for image in images:
        print(chop(net, image).max().item())
"""


def test_a_call_of_its_own_is_no_caller() -> None:
    assert findings(CHOPPED, "MEM05") == []
    assert len(findings(CHOPPED + SHOWN, "MEM05")) == 1


CHOSEN = """
import torch
from settings import load_settings

class Flow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.net(x).sum()

    {decorator}
    def {name}(self, token):
        return self.net(token.float()), None

if __name__ == "__main__":
    net = load_settings("flow.yaml")["flow"]
    net.to("cuda")
    net.eval()
    token = torch.randint(0, 6561, size=(1, 300)).to("cuda")
    whole, _ = net.inference(token)
    for i in range(0, 300, 30):
        part, _ = net.inference(token[:, : i + 30])
        print((whole[:, i:] - part).abs().max().item())
"""


@pytest.mark.parametrize(
    ("decorator", "name", "count"),
    [
        ("@torch.inference_mode()", "inference", 0),
        ("@torch.no_grad()", "inference", 0),
        ("@torch.no_grad()", "infer", 1),
        ("@torch.jit.export", "inference", 1),
    ],
)
def test_a_method_out_of_sight_may_be_one_of_the_file(decorator: str, name: str, count: int) -> None:
    assert len(findings(CHOSEN.format(decorator=decorator, name=name), "MEM05")) == count


FROZEN = """
import torch
from dataclasses import dataclass
from torch import nn

@dataclass
class Options:
    kmax: int

class Scores(nn.Module):
    def __init__(self, options: Options):
        super().__init__()
        kmax = options.kmax
        self.options = options
        self.places = nn.Parameter(torch.arange(-kmax, kmax + 1.0){flag})

    def forward(self, x):
        return torch.exp(-(x[..., None] - self.places) ** 2).sum(-1)

class Viewer:
    def __init__(self, kmax, times):
        self.times = times
        self.net = Scores(Options(kmax))
        self.found = self._project(self.net)

    def _project(self, net):
        found = []
        for time in self.times:
            found.append(net(torch.ones(4) * time).detach().cpu())
        return torch.stack(found)
"""


@pytest.mark.parametrize(
    ("flag", "count"), [(", requires_grad=False", 0), (", False", 0), (", requires_grad=True", 1), ("", 1)]
)
def test_parameters_that_need_no_gradient_record_nothing(flag: str, count: int) -> None:
    assert len(findings(FROZEN.format(flag=flag), "MEM05")) == count


KINDS = """
import torch
import transformers
from torch import nn
from boosters import Booster

class Table:
    def predict(self, x):
        return x

def evaluate(model, batches):
    model.eval()
    found = []
    if isinstance(model, {kind}):
        for x in batches:
            found.append(model.predict(x.cuda()).mean().item())
    return sum(found)
"""


@pytest.mark.parametrize(
    ("kind", "count"), [("Booster", 0), ("Table", 0), ("nn.Module", 1), ("transformers.CLIPModel", 1)]
)
def test_another_class_than_that_of_the_network(kind: str, count: int) -> None:
    assert len(findings(KINDS.format(kind=kind), "MEM05")) == count


PROFILES = """
import torch

def profiles(forward_model, batches):
    forward_model.eval()
    found = []
    for x in batches:
        i, q = forward_model(x.cuda())
        found.append((i.{read}, q.{read}))
    return found
"""


@pytest.mark.parametrize(("read", "count"), [("cpu().numpy()", 0), ("detach().cpu().numpy()", 1)])
def test_parts_that_become_arrays_have_no_graph(read: str, count: int) -> None:
    assert len(findings(PROFILES.format(read=read), "MEM05")) == count


POLICY = """
import torch

def evaluate(agent, envs):
    agent.eval()
    seen = envs.reset()
    for _ in range(1000):
        action, value = agent(torch.as_tensor(seen).cuda())
        seen = envs.step(action.cpu().numpy())
        print({shown})
"""


@pytest.mark.parametrize(("shown", "count"), [("value.mean()", 1), ("value.cpu().numpy().mean()", 0)])
def test_one_of_several_parts_may_be_without_a_graph_by_itself(shown: str, count: int) -> None:
    assert len(findings(POLICY.format(shown=shown), "MEM05")) == count


NETWORKS = """
import torch
from torch import nn

nets = [nn.BatchNorm1d(4), nn.BatchNorm1d(4)]
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
for x, y in loader:
    for net, optimizer in zip(nets, optimizers):
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

[net.eval() for net in nets{some}]
shown = [net(test)[0] for net in nets]
print(shown[0].data.numpy())
"""


@pytest.mark.parametrize(("some", "count"), [("", 1), (" if net.affine", 0)])
def test_networks_that_a_comprehension_switches(some: str, count: int) -> None:
    assert len(findings(NETWORKS.format(some=some), "MEM05")) == count
