"""TRAIN10: `.data` of objects that wrap tensors, and what is left of an expression without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.rules.mem.projects import linted
from tests.support import findings, fixed

POINTS = """\
from torch import Tensor

class Keypoints:
    def __init__(self, points):
        self._points = points

    {property}
    def data(self):
        return self._points
"""
MOVED = """\
from typing import Union
import torch
from points import Keypoints

def move(points: Union[torch.Tensor, Keypoints], step):
    if isinstance(points, torch.Tensor):
        count = points.size(0)
        points = step(Keypoints(points.view(-1, 2)))
        return points.data.view(count, -1, 2)
    return step(points)

def bias_of(layer):
    return layer.bias.data.view(-1, 2)
"""


@pytest.mark.parametrize(("property_", "count"), [("@property", 1), ("@staticmethod", 2)])
def test_data_of_a_class_of_the_project_may_be_the_tensor_that_it_wraps(
    tmp_path: Path, property_: str, count: int
) -> None:
    found = linted(tmp_path, "TRAIN10", points=POINTS.format(property=property_), main=MOVED)
    assert len(found) == count


OF_PACKAGES = """\
import torch
{imported}

def copies(ensemble, count):
    start = ensemble.weights.data.clone()
    return [start.clone() for _ in range(count)]
"""


@pytest.mark.parametrize(
    ("imported", "count"),
    [
        ("from tensordict import from_modules", 0),
        ("from lietorch import SE3", 0),
        ("import torchio as tio", 0),
        ("from fastai.vision import ImageList", 0),
        ("from tensors import stack", 1),
    ],
)
def test_objects_of_packages_that_wrap_tensors_have_methods_of_tensors(imported: str, count: int) -> None:
    assert len(findings(OF_PACKAGES.format(imported=imported), "TRAIN10")) == count


@pytest.mark.parametrize(("property_", "count"), [("@property", 0), ("@staticmethod", 1)])
def test_data_of_a_class_of_a_file_that_is_not_imported_in_sight(tmp_path: Path, property_: str, count: int) -> None:
    shown = "import torch\nimport library as lib\n\ndef frame(path, i):\n    image = lib.read(path)\n"
    shown += "    return image.data[..., i].permute(1, 2, 0).byte()\n"
    assert len(linted(tmp_path, "TRAIN10", points=POINTS.format(property=property_), main=shown)) == count


@pytest.mark.parametrize(
    ("read", "bare"),
    [
        ("scores.to(layer.weight.data)", "scores.to(layer.weight)"),
        ("torch.zeros_like(layer.weight.data)", "torch.zeros_like(layer.weight)"),
        ("scores.add(layer.weight.data)", "scores.add(layer.weight.detach())"),
        ("torch.add(layer.weight.data, 1)", "torch.add(layer.weight.detach(), 1)"),
    ],
)
def test_what_only_tells_a_type_and_a_device_needs_no_detach(read: str, bare: str) -> None:
    head = "import torch\nfrom torch import nn\n\ndef f(scores):\n    layer = nn.Linear(2, 2).double()\n"
    code = f"{head}    return {read}\n"
    after = fixed(code, "TRAIN10", unsafe=True)
    assert bare in after
    made = []
    for text in (code, after):
        namespace: dict[str, Any] = {}
        torch.manual_seed(1)
        exec(text, namespace)
        made.append(namespace["f"](torch.ones(2, 2)))
    assert torch.equal(*made)
    assert [each.requires_grad for each in made] == [False, False]


@pytest.mark.parametrize(
    ("read", "after"),
    [
        ("(y.data).squeeze()", "y.squeeze()"),
        ("[(y.data)[0], 1]", "[y[0], 1]"),
        ("((y + 1).data).squeeze()", "((y + 1)).squeeze()"),
        ("1 if(y.data).max() > 1 else 0", "1 if(y).max() > 1 else 0"),
        ("x.data.storage()[0:10]", "x.storage()[0:10]"),
        ("x.data.data_ptr()", "x.data_ptr()"),
    ],
)
def test_what_is_left_without_data(read: str, after: str) -> None:
    code = "import torch\nfrom torch import nn\nnet = nn.Linear(3, 4)\nx = nn.Parameter(torch.ones(2, 3))\n"
    code += "with torch.no_grad():\n    y = net(x)\n    shown = {}\n    print(shown)\n"
    assert fixed(code.format(read), "TRAIN10", unsafe=True) == code.format(after)


def test_the_data_of_what_was_cut_off_above_is_the_tensor_itself() -> None:
    code = """\
import torch
from torch import nn

class Norm(nn.Module):
    def forward(self, x: torch.Tensor):
        if self.training:
            mean = x.mean(0).data
            self.running = self.running * 0.9 + mean.data.view(-1)
            mean = mean.repeat(2, 1)
        else:
            mean = self.running.repeat(2, 1)
        return x - mean
"""
    after = fixed(code, "TRAIN10", unsafe=True)
    assert "mean = x.mean(0).detach()\n" in after
    assert "+ mean.view(-1)\n" in after


@pytest.mark.parametrize(("rest", "is_fixed"), [("", False), ("            shown.append(x)\n", True)])
def test_a_branch_in_which_nothing_would_be_left_stays(rest: str, is_fixed: bool) -> None:
    code = "import torch\n\ndef shapes(rows: list, shown):\n    for _ in rows:\n        x = torch.zeros(2)\n"
    code += f"        if len(shown) > 2:\n            x = x.data\n{rest}        shown.append(x.shape)\n"
    after = fixed(code, "TRAIN10", unsafe=True)
    assert ("x = x.data" not in after) is is_fixed
    assert "pass" not in after


@pytest.mark.parametrize(
    ("read", "count"),
    [("pred = output.data.max(1)[1]", 1), ("_, pred = output.data.max(1)", 1), ("pred = output.data.max()", 0)],
)
def test_an_index_of_an_extremum_is_one_of_a_tensor(read: str, count: int) -> None:
    code = f"import torch\n\ndef guess(model, x):\n    output, parts = model.run(x)\n    {read}\n    return pred\n"
    assert len(findings(code, "TRAIN10")) == count
