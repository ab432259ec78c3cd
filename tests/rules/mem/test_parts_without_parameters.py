"""MEM01, MEM05: modules, also of other files, whose parts and bases have nothing to train, and what is no module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mem.projects import linted
from tests.support import findings

DISTANCES = """
import torch
from torch import nn

class Potential(nn.Module):
    def __init__(self, fn=None):
        super().__init__()
        self._fn = fn

    def fn(self, x, y):
        return self._fn(x, y)

    def forward(self, x, y):
        return self.fn(x, y)

class Distance(Potential):
    def __init__(self, d=None):
        super().__init__(fn=d)
        self.register_buffer("scale", self.checked(1.0).clone())

    def checked(self, x):
        return x if isinstance(x, torch.Tensor) else torch.tensor(x)

    def __add__(self, other):
        return Distance(lambda x, y: self.fn(x, y) + other.fn(x, y))

class Squared(Distance):
    def __init__(self):
        super().__init__({inner})

    def fn(self, x, y):
        return (x - y).square().sum()
"""
FIDELITY = """
from distances import Distance, Potential, Squared

class Fidelity(Potential):
    def __init__(self, d=None):
        super().__init__()
        self.d = Distance(d)

    def fn(self, x, y):
        return self.d(x, y)

class L2(Fidelity):
    def __init__(self):
        super().__init__()
        self.d = Squared()
"""
DESCENT = """
import torch
from fidelity import L2

@torch.no_grad()
def step(x, y):
    return x - 0.1 * (x - y)

def descend(x, y):
    fidelity = L2()
    history = []
    for _ in range(1000):
        x = step(x, y)
        history.append(fidelity(x, y).cpu())
    return x, [float(loss) for loss in history]

descend(torch.zeros(3).cuda(), torch.ones(3).cuda())
"""


@pytest.mark.parametrize(("inner", "lines"), [("", []), ("d=None", []), ("nn.Linear(3, 3)", [14])])
def test_what_a_part_of_a_part_was_built_with(tmp_path: Path, inner: str, lines: list[int]) -> None:
    distances = DISTANCES.replace("{inner}", inner)
    found = linted(tmp_path, "MEM01", distances=distances, fidelity=FIDELITY, main=DESCENT)
    assert [finding.line for finding in found] == lines


METRIC = """
import torch
from torch import nn

class Metric(nn.Module):
    def forward(self, x, y):
        return self.metric(x, y).mean()

class PSNR(Metric):
    def metric(self, x, y):
        return -10 * {error}.log10()
"""
SHOWN = """
import torch
from metric import PSNR

class Cropped(PSNR):
    def forward(self, x, y):
        return super().forward(x[:2], y[:2])

metric = Cropped()
for x, y in zip(torch.ones(4, 3), torch.zeros(4, 3)):
    print(f"{metric(x, y).item():.2f} dB")
"""


def test_the_forward_pass_may_be_that_of_a_base_in_another_file(tmp_path: Path) -> None:
    assert linted(tmp_path, metric=METRIC.replace("{error}", "(x - y).square()"), main=SHOWN) == []


LAYERED = METRIC.replace("{error}", "self.net(x - y)").replace(
    "class PSNR(Metric):", "class PSNR(Metric):\n    def __init__(self):\n        super().__init__()\n"
    "        self.net = nn.Linear(3, 3)\n"
)  # fmt: skip


@pytest.mark.parametrize(("how", "count"), [("", 0), (", freeze=False", 1)])
def test_a_table_from_elsewhere_is_frozen_unless_it_is_told_not_to_be(tmp_path: Path, how: str, count: int) -> None:
    table = LAYERED.replace("nn.Linear(3, 3)", f"nn.Embedding.from_pretrained(torch.ones(3, 3){how})")
    assert len(linted(tmp_path, metric=table, main=SHOWN)) == count


@pytest.mark.parametrize(
    ("switch", "count"),
    [
        ("self.net.weight.requires_grad = True", 1),
        ("self.net.weight.requires_grad = tuned", 1),
        ("self.net.weight.requires_grad = False", 0),
        ("[p.requires_grad_() for p in self.net.parameters()]", 1),
        ("for _, p in self.net.named_parameters():\n            p.requires_grad = True", 1),
        ("for p in self.net.parameters():\n            p.requires_grad = False", 0),
        ("print(sum(p.numel() for p in self.net.parameters() if p.requires_grad))", 0),
    ],
)
def test_a_table_that_is_switched_on_is_trained(tmp_path: Path, switch: str, count: int) -> None:
    made = "nn.Embedding.from_pretrained(torch.ones(3, 3))"
    table = LAYERED.replace("nn.Linear(3, 3)", f"{made}\n        {switch}")
    assert len(linted(tmp_path, metric=table, main=SHOWN)) == count


def test_one_that_has_a_layer_is_a_network(tmp_path: Path) -> None:
    assert len(linted(tmp_path, metric=LAYERED, main=SHOWN)) == 1


TABLE = """
import torch
{head}

class Hash{base}:
    def __init__(self, keys):
        {init}
        self.keys = keys

    def __call__(self, keys):
        return {hashed}

    def cuda(self):
        return Hash(self.keys.cuda())

class Table:
    def __init__(self, keys, values, hash=None):
        self.keys, self.values = keys, values
        self.hash = hash or Hash(keys)

    def evaluate(self, keys):
        found = self.hash(keys)
        return self.values[found.argmax(-1)].tolist()

    def cuda(self):
        return Table(self.keys.cuda(), self.values.cuda(), self.hash.cuda())

print(Table(torch.arange(3), torch.arange(3)).evaluate(torch.arange(2)))
"""


def test_an_object_that_is_made_where_none_is_given_is_no_network() -> None:
    plain = {"head": "", "base": "", "init": "pass", "hashed": "(keys[:, None] == self.keys).long()"}
    assert findings(TABLE.format(**plain), "MEM05") == []
    net = {"base": "(nn.Module)", "init": "super().__init__(); self.net = nn.Linear(1, 3)", "hashed": "self.net(keys)"}
    code = TABLE.format(head="from torch import nn", **net).replace("__call__", "forward")
    assert len(findings(code, "MEM05")) == 1


EXTRACTOR = """
import torch
from torch import nn

class Extractor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.eval()

    {switch}
    def __call__(self, image):
        return self.net(torch.as_tensor(image))
"""
VIDEO = """
import torch
from extractor import Extractor

net = Extractor().eval()
for image in torch.ones(10, 3).cuda():
    confidence = net(image)
    print(confidence.max().item())
"""


@pytest.mark.parametrize(("switch", "count"), [("@torch.no_grad()", 0), ("", 1)])
def test_a_module_may_run_by_a_call_of_its_own(tmp_path: Path, switch: str, count: int) -> None:
    assert len(linted(tmp_path, extractor=EXTRACTOR.format(switch=switch), main=VIDEO)) == count


BASE = """
import torch
from torch import nn

class {base}{derives}:
    @classmethod
    def from_pretrained(cls, path, **kwargs):
        parts = {{name: torch.load(name) for name in kwargs}}
        return build(cls, parts)

    def __call__(self, prompt, **kwargs):
        return run(self, prompt)
"""
DRAWING = """
import torch
from base import {base}

def draw(prompts):
    pipe = {base}.from_pretrained("weights", unet=1)
    pipe = pipe.to("cuda")
    images = []
    for prompt in prompts:
        images.append(pipe(prompt, steps=20)[0])
    return [image.cpu().tolist() for image in images]

print(draw(["a cat"] * 10))
"""


@pytest.mark.parametrize(
    ("base", "derives", "count"),
    [("DrawingPipeline", "", 0), ("DrawingNetwork", "(nn.Module)", 1), ("DrawingPipeline", "(nn.Module)", 1)],
)
def test_a_pipeline_of_the_project_itself_is_no_network(tmp_path: Path, base: str, derives: str, count: int) -> None:
    """Unless its class says that it is one."""
    files = {"base": BASE.format(base=base, derives=derives), "main": DRAWING.format(base=base)}
    assert len(linted(tmp_path, "MEM01", **files)) == count


def test_nor_is_one_that_is_made_of_parts(tmp_path: Path) -> None:
    main = DRAWING.format(base="DrawingPipeline").replace(
        '.from_pretrained("weights", unet=1)', "(unet=torch.load('u'))"
    )
    assert linted(tmp_path, "MEM01", "MEM05", base=BASE.format(base="DrawingPipeline", derives=""), main=main) == []
    elsewhere = main.replace("from base import", "from drawings import")
    assert linted(tmp_path, "MEM01", "MEM05", main=elsewhere) == []
    network = elsewhere.replace("DrawingPipeline", "Drawing")
    assert linted(tmp_path, "MEM01", "MEM05", main=network) != []


BOOSTED = """
import numpy as np
import torch

class BoostedTrainer:
    def __init__(self, library):
        self.library = library

    def train(self, params, data):
        self.model = self.library.train(params, data)

    def evaluate(self, path, batches):
        self.model = self.library.Booster(model_file=path)
        self.model.eval()
        return [{read}.tolist() for batch in batches]
"""


@pytest.mark.parametrize(
    ("read", "count"),
    [
        ("torch.Tensor(self.model.predict(batch))", 0),
        ("np.asarray(self.model(batch))", 0),
        ("self.model(batch)", 1),
        ("self.model.predict(batch)", 1),
    ],
)
def test_what_becomes_a_tensor_or_an_array_again_has_no_graph(read: str, count: int) -> None:
    assert len(findings(BOOSTED.format(read=read), "MEM05")) == count


PROJECTION = """
import torch
from torch import nn
from {package} import {helper}

class Projection(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        for _ in range(3):
            energy = self.net(x).square().mean()
            x = x - 0.1 * {helper}(energy, x)
        return x
"""
PROJECTED = """
import torch
from projection import Projection

projection = Projection(torch.nn.Linear(2, 2))
projection.eval()
for x in torch.ones(10, 4, 2):
    print(projection(x).detach().numpy())
"""


@pytest.mark.parametrize(
    ("helper", "count"), [("gradient", 0), ("compute_jacobian", 0), ("scaled", 1), ("clip_grad", 1), ("input_grad", 0)]
)
def test_a_network_may_take_gradients_by_a_helper_out_of_sight(tmp_path: Path, helper: str, count: int) -> None:
    projection = PROJECTION.format(package="neural.tools", helper=helper)
    assert len(linted(tmp_path, "MEM05", projection=projection, main=PROJECTED)) == count


IMPLEMENTATION = """
import torch
from abc import ABC, abstractmethod

class Implementation(ABC):
    def predict(self, x):
        return {called}

    @abstractmethod
    def inner_predict(self, x):
        pass

    def update(self, x):
        loss = self.net(x).sum()
        loss.backward()
"""
ACTING = """
import torch
from torch import nn
from implementation import Implementation

class Acting(Implementation):
    def __init__(self):
        self.net = nn.Linear(3, 3)

    def inner_predict(self, x):
        scores = self.net(x)
        return scores.argmax(dim=1)
"""


@pytest.mark.parametrize(("called", "count"), [("self.inner_predict(x)", 0), ("x", 1)])
def test_what_a_base_calls_is_up_to_those_who_call_the_base(tmp_path: Path, called: str, count: int) -> None:
    base = IMPLEMENTATION.format(called=called)
    assert len(linted(tmp_path, "MEM05", implementation=base, main=ACTING)) == count


RANKING = """
import torch
from torch import nn

class Ranker:
    def predict(self, loader):
        raise NotImplementedError

    def evaluate(self, loader):
        return self.predict(loader)

class Network(Ranker):
    def __init__(self):
        self.net = nn.Linear(3, 3)

    def predict(self, loader):
        self.net.eval()
        right = 0
        for x, y in loader:
            right += (self.net(x).argmax(1) == y).sum().item()
        return right

print(Network().evaluate(loader))
"""


def test_those_who_call_a_base_of_the_same_file_are_in_sight() -> None:
    assert len(findings("from loading import loader\n" + RANKING, "MEM05")) == 1


OPERATORS = """
import torch
from torch import nn

class Circuit(nn.Module):
    def __init__(self, operators):
        super().__init__()
        self.operators = nn.ModuleList(operators)

    def run(self, state):
        for operator in self.operators:
            operator(state)

    def evaluate(self, states):
        for state in states:
            {end}

circuit = Circuit([nn.Linear(3, 3)])
circuit.evaluate(torch.ones(4, 3))
"""


def test_a_part_that_runs_for_what_it_changes_belongs_to_the_pass_of_the_whole() -> None:
    assert findings(OPERATORS.format(end="self.run(state)"), "MEM05") == []
    assert len(findings(OPERATORS.format(end="print(self.operators[0](state).sum().item())"), "MEM05")) == 1


SWITCHED = """
import copy
import torch
from torch import nn

class Trained:
    def __init__(self, network):
        self.network = network

    def __enter__(self):
        self.network.requires_grad_(True)

    def __exit__(self, *error):
        self.network.requires_grad_({after})

class Agent:
    def __init__(self):
        self.critic = nn.Linear(3, 1)
        self.target = copy.deepcopy(self.critic)
        self.optimizer = torch.optim.Adam(self.critic.parameters())

    def evaluate(self, batches):
        self.target.eval()
        with Trained({switched}):
            for x in batches:
                print(self.target(x).sum().item())
"""


@pytest.mark.parametrize(
    ("after", "switched", "count"),
    [("requires_grad=False", "self.critic", 0), ("True", "self.critic", 1), ("False", "self", 1)],
)
def test_networks_are_off_unless_a_context_switches_them_on(after: str, switched: str, count: int) -> None:
    assert len(findings(SWITCHED.format(after=after, switched=switched), "MEM05")) == count


TOWER = """
    import torch
    import clip

    def features(batches, device):
        network, _ = clip.load("RN50", device)
        network = network.to(device)
        {mode}
        found = []
        for x in batches:
            {call}
            found.append(feature.detach().cpu())
        return torch.cat(found)
    """


@pytest.mark.parametrize(
    ("mode", "call", "count"),
    [
        ("network.eval()", "feature = network.visual(x.to(device))", 1),
        ("network.eval()", "feature = network.visual(x)", 0),  # a text, for all that is known
        ("network.eval()", "feature = network.set_visual(x.to(device))", 0),
        ("torch.set_grad_enabled(False)", "network.eval(); feature = network.visual(x.to(device))", 0),
        ("network.parameters()", "feature = network.visual(x.to(device))", 0),
    ],
)
def test_a_method_of_a_network_that_is_told_to_evaluate(mode: str, call: str, count: int) -> None:
    assert len(findings(TOWER.format(mode=mode, call=call), "MEM05", "MEM09")) == count
