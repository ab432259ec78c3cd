"""TRAIN07: `forward` past `__call__`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support import findings, fixed, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

SETUP = """\
import torch
from torch import nn

"""


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "TRAIN07")]


DIRECT = {
    "a layer of a module": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body.forward(x)  # here
""",
    "a network of another package": """\
import timm

def predict(images):
    model = timm.create_model("resnet18").eval()
    return model.forward(images)  # here
""",
    "a network that is handed in": """\
def predict(model, images):
    return model.forward(images)  # here
""",
    "an annotated network of another package": """\
from transformers import BartModel

def encode(bart: BartModel, tokens):
    return bart.forward(tokens)[0]  # here
""",
    "parts of a module that are made out of sight": """\
import importlib

class Speaker(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.net = importlib.import_module("models." + name).Net()
        self.loss = importlib.import_module("losses." + name).Loss()

    def forward(self, x, label):
        x = self.net.forward(x)  # here
        return self.loss.forward(x, label)  # here
""",
}


@pytest.mark.parametrize("case", DIRECT)
def test_a_direct_call_is_found(case: str) -> None:
    assert found(DIRECT[case]) == marked(DIRECT[case])


LOOK_ALIKES = {
    "one's own": """\
class Net(nn.Module):
    def forward(self, x):
        return x

    def predict(self, x):
        return self.forward(x).argmax(1)
""",
    "a class that is no module": """\
class Radon:
    def forward(self, image):
        return image.sum(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.radon = Radon()

    def forward(self, image):
        return self.radon.forward(image)
""",
    "a module that is called in another way": """\
class Kernel(nn.Module):
    def __call__(self, x):
        return self.forward(x).exp()

    def forward(self, x):
        return x

def evaluate(x):
    kernel = Kernel()
    return kernel.forward(x)
""",
    "parts of such a module": """\
class Kernel(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base

    def __call__(self, x):
        return self.forward(x).exp()

    def forward(self, x):
        return self.base.forward(x)
""",
    "a package whose modules are": """\
import gpytorch

def covariance(x):
    kernel = gpytorch.kernels.RBFKernel()
    kernel.eval()
    return kernel.forward(x, x)
""",
    "an operator that has a way back": """\
import projections

class Reconstruction(nn.Module):
    def __init__(self):
        super().__init__()
        self.radon = projections.make()

    def forward(self, sinogram):
        return self.radon.adjoint(sinogram) + self.radon.forward(sinogram)
""",
    "a network of OpenCV": """\
import cv2

class Detector:
    def __init__(self, path):
        self.net = cv2.dnn.readNetFromONNX(path)

    def detect(self, blob):
        self.net.setInput(blob)
        return torch.from_numpy(self.net.forward())
""",
    "a compiled extension": """\
from torch.utils.cpp_extension import load

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = load(name="kernel", sources=["kernel.cu"])

    def forward(self, x):
        return self.kernel.forward(x)
""",
    "a remote module": """\
from torch.distributed import rpc

class Hybrid(nn.Module):
    def __init__(self, remote):
        super().__init__()
        self.remote = remote

    def forward(self, x):
        return self.remote.forward(x)
""",
}


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_a_look_alike_is_left_alone(case: str) -> None:
    assert found(LOOK_ALIKES[case]) == []


@pytest.mark.parametrize(("base", "count"), [("", 0), ("nn.Module", 1)], ids=["a controller", "a network"])
def test_an_object_out_of_sight_may_be_of_a_plain_class_of_the_project(tmp_path: Path, base: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    methods = "".join(f"    def {name}(self, x=None):\n        return x\n\n" for name in ("forward", "cuda", "eval"))
    (tmp_path / "control.py").write_text(f"from torch import nn\n\nclass Control({base}):\n{methods}")
    (tmp_path / "learn.py").write_text(
        "import torch\n\nclass Learner:\n    def __init__(self, mac):\n        self.mac = mac\n"
        "        self.mac.cuda()\n        self.mac.eval()\n\n"
        "    def train(self, batch):\n        return self.mac.forward(batch)\n"
    )
    source = Source.read(tmp_path / "learn.py")
    reports = [found for found in lint(source, project=Project()) if found.code == "TRAIN07"]
    assert len(reports) == count


@pytest.mark.parametrize(("extra", "expected"), [("", [5]), ("def __call__(self, x):\n        return x\n", [])])
def test_the_class_may_stand_in_another_file(tmp_path: Path, extra: str, expected: list[int]) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "nets.py").write_text(f"from torch import nn\n\nclass Net(nn.Module):\n    {extra or 'pass'}\n")
    (tmp_path / "train.py").write_text(
        "import torch\nfrom nets import Net\n\nnet = Net()\nout = net.forward(torch.ones(3))\n"
    )
    source = Source.read(tmp_path / "train.py")
    result = lint(source, Settings.selecting("TRAIN07"), strict=True, project=Project())
    assert [finding.line for finding in result] == expected


def test_the_fix_calls_the_module_and_computes_the_same() -> None:
    code = (
        SETUP
        + "net = nn.Linear(4, 2)\nx = torch.ones(3, 4)\nhook = net.register_forward_hook(seen)\ny = net.forward(x)\n"
    )
    after = fixed(code, "TRAIN07")
    assert after.endswith("y = net(x)\n")
    runs: dict[str, list[torch.Tensor]] = {}
    for name, text in (("before", code), ("after", after)):
        calls: list[object] = []
        variables = {"seen": lambda *given, calls=calls: calls.append(given)}
        torch.manual_seed(0)
        exec(text, variables)
        runs[name] = [variables["y"], torch.tensor(len(calls))]
    assert torch.equal(runs["before"][0], runs["after"][0])
    assert [int(run[1]) for run in runs.values()] == [0, 1]


@pytest.mark.parametrize(("base", "count"), [("Base", 0), ("torch.nn.Module", 1)])
def test_an_object_of_a_class_that_the_package_of_a_file_holds(tmp_path: Path, base: str, count: int) -> None:
    package = tmp_path / "metrics"
    package.mkdir()
    (tmp_path / "pyproject.toml").touch()
    (package / "base.py").write_text("class Base:\n    def forward(self):\n        pass\n")
    distance = (
        f"import torch\nfrom .base import Base\n\nclass Distance({base}):\n    def initialize(self):\n        pass\n"
    )
    (package / "distance.py").write_text(f"{distance}\n    def forward(self, a, b):\n        return a - b\n")
    perceptual = "import torch\nfrom metrics import distance\n\nclass Perceptual(torch.nn.Module):\n"
    perceptual += "    def __init__(self):\n        super().__init__()\n        self.model = distance.Distance()\n"
    perceptual += (
        "        self.model.initialize()\n\n    def forward(self, a, b):\n        return self.model.forward(b, a)\n"
    )
    (package / "__init__.py").write_text(perceptual)
    source = Source.read(package / "__init__.py")
    assert len(lint(source, Settings.selecting("TRAIN07"), strict=True, project=Project())) == count


@pytest.mark.parametrize(
    ("other", "fixes"), [("network(1).forward(x)", 0), ("network(1)(x)", 1), ("Rule().forward(x)", 1)]
)
def test_one_of_two_calls_of_forward_does_not_change_alone(other: str, fixes: int) -> None:
    code = f"""\
from elsewhere import network

class Rule:
    def forward(self, x):
        return x

def compare(x):
    layer = nn.Linear(8, 8)
    return layer.forward(x) - {other}
"""
    assert len(found(code)) == 1
    assert fixed(SETUP + code, "TRAIN07", unsafe=True).count("layer(x)") == fixes


EXPECTED = """
import pytest
from torch import nn

def test_what_has_no_forward_pass():
    net = nn.Linear(2, 2)
    with {context}:
        net.forward()
"""


@pytest.mark.parametrize(
    ("context", "count"), [("pytest.raises(TypeError)", 0), ("contextlib.suppress(TypeError)", 0), ("recorder()", 1)]
)
def test_a_forward_that_a_test_expects_to_raise(context: str, count: int) -> None:
    code = "import contextlib\n" + EXPECTED.format(context=context)
    assert len(findings(code, "TRAIN07")) == count


@pytest.mark.parametrize(("base", "count"), [("nn.Module", 1), ("", 0)])
def test_one_of_several_networks_that_a_branch_chooses_is_called(tmp_path: Path, base: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    net = "    def forward(self, x):\n        return x\n\n"
    (tmp_path / "nets.py").write_text(
        f"from torch import nn\n\nclass Small(nn.Module):\n{net}class Large({base}):\n{net}"
    )
    (tmp_path / "control.py").write_text(f"class Control:\n{net}")
    (tmp_path / "measure.py").write_text(
        "import nets\nfrom torch import nn\n\nclass Distance(nn.Module):\n    def __init__(self, size):\n"
        "        super().__init__()\n        if size < 3:\n            make = nets.Small\n"
        "        else:\n            make = nets.Large\n        self.net = make()\n\n"
        "    def forward(self, x):\n        return self.net.forward(x)\n"
    )
    source = Source.read(tmp_path / "measure.py")
    found = lint(source, Settings.selecting("TRAIN07"), strict=True, project=Project())
    assert len(found) == count


@pytest.mark.parametrize(("decorator", "count"), [("@torch.no_grad()", 0), ("@torch.enable_grad()", 1)])
def test_dropout_where_nothing_is_trained_is_meant(decorator: str, count: int) -> None:
    code = f"""\
import torch
from torch import nn
from torch.nn import functional as F

class Sampler(nn.Module):
    {decorator}
    def sample(self, x, drop):
        return F.dropout(x, p=drop)
"""
    assert len(findings(code, "TRAIN07")) == count


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("p = self.p if self.training else 0.0\n        return F.dropout(x, p=p)", 0),
        ("p = 0.0\n        if self.training:\n            p = self.p\n        return F.dropout(x, p)", 0),
        (
            "if not self.training:\n            p = 0.0\n        else:\n            p = self.p\n"
            "        return F.dropout(x, p)",
            0,
        ),
        ("return F.dropout(x, self.p * self.training)", 0),
        ("return F.dropout(x, self.p * train)", 0),
        ("p = self.p if self.deep else 0.0\n        return F.dropout(x, p=p)", 1),
        ("if self.training:\n            x = x + 1\n        p = self.p\n        return F.dropout(x, p)", 1),
        ("return F.dropout(x, p=self.train_dropout)", 1),
        ("p = self.pretrained_p\n        return F.dropout(x, p)", 1),
    ],
)
def test_a_probability_that_says_whether_there_is_training(body: str, count: int) -> None:
    code = f"""\
from torch import nn
from torch.nn import functional as F

class Net(nn.Module):
    def forward(self, x):
        {body}
"""
    assert len(findings(code, "TRAIN07")) == count


@pytest.mark.parametrize(("made", "count"), [("nn.Conv2d", 1), ("nn.MaxPool2d", 0), ("getattr(nn, f'MaxPool{n}d')", 0)])
def test_modules_in_a_list_are_hidden_where_they_have_something_to_train(made: str, count: int) -> None:
    code = f"""\
class Net(nn.Module):
    def __init__(self, sizes, n):
        super().__init__()
        make = {made}
        self.parts = [make(size, 3) for size in sizes]
"""
    assert len(found(code)) == count


@pytest.mark.parametrize(("other", "count"), [("os", 1), ("crypten", 0)])
def test_what_looks_like_a_module_may_be_one_of_another_package(other: str, count: int) -> None:
    code = f"import torch\nimport {other}\n\nprivate = load('net.pt')\nprivate.eval()\n"
    assert len(findings(code + "print(private.forward(torch.ones(3)))\n", "TRAIN07")) == count
    accuracy = "def accuracy(net, x, y):\n    net.eval()\n    return (net(x).argmax(1) == y).float().mean().item()\n"
    assert len(findings(code + accuracy, "MEM05")) == count


@pytest.mark.parametrize(("beside", "is_fixed"), [("net(x)", False), ("net(-x)", True), ("other(x)", True)])
def test_a_forward_that_is_compared_with_the_call_stays(beside: str, is_fixed: bool) -> None:
    code = "import torch\nfrom torch import nn\n\nnet, other = nn.Linear(2, 2), nn.Linear(2, 2)\n\ndef check(x):\n"
    code += f"    first = net.forward(x)\n    assert torch.equal(first, {beside})\n"
    assert ("first = net(x)\n" in fixed(code, "TRAIN07")) is is_fixed


CHOSEN = """\
import torch
from torch import nn
from abc import ABC

class Backend:
    pass

class Doubled({base}):
    def forward(self, x):
        return x * 2

class Net(nn.Module):
    kinds = {{"doubled": Doubled, "flat": nn.Flatten}}

    def __init__(self, kind):
        super().__init__()
        {made}

    def forward(self, x):
        return self.backend.forward(x)
"""


@pytest.mark.parametrize(("base", "count"), [("nn.Module", 1), ("Backend", 0), ("ABC", 0)])
@pytest.mark.parametrize(
    "made",
    [
        "self.backend = self.kinds[kind]()",
        "cls = self.kinds.get(kind)\n        self.backend = cls()",
        "self.backend = (Doubled if kind else nn.Flatten)()",
    ],
)
def test_an_object_of_one_of_several_classes_is_no_module_where_one_of_them_is_none(
    made: str, base: str, count: int
) -> None:
    assert len(findings(CHOSEN.format(made=made, base=base), "TRAIN07")) == count


@pytest.mark.parametrize(("base", "count"), [("nn.Module", 1), ("Backend", 0)])
def test_one_of_two_objects_is_no_module_where_one_of_them_is_none(base: str, count: int) -> None:
    made = "self.backend = Doubled() if kind else nn.Flatten()"
    assert len(findings(CHOSEN.format(made=made, base=base), "TRAIN07")) == count


@pytest.mark.parametrize("name", ["MCDropoutBlock", "BayesianBlock", "Block"])
def test_dropout_of_a_network_that_is_sampled_is_meant(name: str) -> None:
    code = f"import torch.nn.functional as F\n\nclass {name}(nn.Module):\n    def forward(self, x):\n"
    assert len(found(code + "        return F.dropout(x, p=0.5)\n")) == (name == "Block")


@pytest.mark.parametrize(
    ("around", "count"),
    [
        ("# The loss is weighted by its uncertainty, unlike naive Bayes.", 1),
        ("def monte_carlo(net, x):\n    return [net(x) for _ in range(30)]", 0),
    ],
)
def test_what_a_file_says_elsewhere_keeps_no_dropout_on(around: str, count: int) -> None:
    code = f"import torch.nn.functional as F\n\n{around}\n\nclass Block(nn.Module):\n    def forward(self, x):\n"
    assert len(found(code + "        return F.dropout(x, p=0.5)\n")) == count


NAMED_ALIKE = """\
import torch
from torch import nn


def train(judge: nn.Module, batches):
    for x in batches:
        judge.forward(x).sum().backward()


def show(build, x):
    judge = build(x)
    print(OTHER)
"""


@pytest.mark.parametrize(("other", "is_changed"), [("judge.forward(x)", False), ("x.forward(judge)", True)])
def test_what_is_called_the_same_in_another_function_is_called_in_one_way(other: str, is_changed: bool) -> None:
    after = fixed(NAMED_ALIKE.replace("OTHER", other), "TRAIN07", unsafe=True)
    assert ("judge(x).sum()" in after) is is_changed
