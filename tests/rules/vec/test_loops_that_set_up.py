"""VEC: a loop that a module runs once, when it is built, is left alone; one over all elements of a table is not."""

from __future__ import annotations

import pytest

from tests.support import findings

MODULE = """
import torch
from torch import nn

class Grid({base}):
    def __init__(self, points):
        super().__init__()
        self.points = points
        self.rows = torch.zeros(points, 4)
        {made}

    def reset(self):
        rows = torch.zeros(self.points, 4)
        for i in range(self.points):
            rows[i, i % 4] = i + 1
        self.rows = rows

    def fill(self):
        rows = torch.zeros(self.points, 4)
        for i in range(self.points):
            for j in range(4):
                rows[i, j] = i * j + 1
        self.rows = rows

    def fuse(self):
        if not hasattr(self, "identity"):
            identity = torch.zeros(self.points, 4)
            for i in range(self.points):
                identity[i, i % 4] = 1
            self.identity = identity

    def forward(self, x):
        {run}
        return x * self.rows
"""


@pytest.mark.parametrize(
    ("base", "made", "run", "lines"),
    [
        ("nn.Module", "self.reset()", "pass", [19]),
        ("nn.Module", "self.reset()", "self.reset()", [13, 19]),
        ("nn.Module", "pass", "self.reset()", [13, 19]),
        ("nn.Module", "self.fill()", "self.reset()", [13, 19]),
        ("nn.Module", "pass", "self.fuse()", [13, 19]),
        ("object", "self.reset()", "pass", [13, 19]),
    ],
)
def test_only_single_loops_of_what_a_module_runs_once_are_silent(
    base: str, made: str, run: str, lines: list[int]
) -> None:
    code = MODULE.format(base=base, made=made, run=run)
    assert [finding.line for finding in findings(code, "VEC01")] == lines


def test_a_method_that_initialises_weights_sets_up_whoever_calls_it() -> None:
    code = MODULE.format(base="nn.Module", made="pass", run="pass")
    initialising = code.replace("        self.rows = rows\n", "        self.rows = nn.init.zeros_(rows)\n", 1)
    assert initialising != code
    assert [finding.line for finding in findings(code, "VEC01")] == [13, 19]
    assert [finding.line for finding in findings(initialising, "VEC01")] == [19]


DEPTHS = """
import torch
from torch import nn


def build(depth, rate):
    rates = {listed}
    return nn.ModuleList([nn.Dropout(rates[i]) for i in range(depth)])
"""


def test_a_list_of_numbers_that_the_host_has_made_is_no_work() -> None:
    assert findings(DEPTHS.format(listed="[x.item() for x in torch.linspace(0, rate, depth)]"), "VEC06") == []


def test_work_on_the_rows_of_a_fresh_tensor_is_work() -> None:
    code = DEPTHS.format(listed="torch.stack([x.exp() for x in torch.linspace(0, rate, depth)])")
    assert len(findings(code, "VEC06")) == 1


PATCHED = """
import torch
from torch import nn


def patch(layer: nn.Conv2d, channels: int):
    weight = layer.weight.detach()
    old = weight.shape[1]
    wider = torch.zeros(layer.out_channels, channels, *layer.kernel_size)
    for i in range(channels):
        wider[:, i] = weight[:, i % old]
    {kept}
"""


@pytest.mark.parametrize(
    ("kept", "count"),
    [
        ("layer.weight = nn.Parameter(wider * (old / channels))", 0),
        ("return wider * (old / channels)", 1),
        ("return nn.Parameter(wider)", 1),
    ],
)
def test_weights_that_are_put_into_a_layer_are_made_once(kept: str, count: int) -> None:
    assert len(findings(PATCHED.format(kept=kept), "VEC01")) == count


PASS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def {name}(self, x: torch.Tensor):
        self.mask = nn.Parameter(torch.ones(4), requires_grad=False)
        out = torch.zeros(x.size(0), 4)
        for i in range(x.size(0)):
            out[i] = x[i] * self.mask
        return out
"""


@pytest.mark.parametrize(("name", "count"), [("forward", 1), ("widen", 0)])
def test_a_pass_that_keeps_a_parameter_sets_nothing_up(name: str, count: int) -> None:
    code = PASS.format(name=name)
    assert sum(len(findings(code, rule)) for rule in ("VEC01", "VEC02", "VEC06")) == count


@pytest.mark.parametrize(
    ("name", "count"), [("init_weights", 0), ("reset_parameters", 0), ("init_hidden", 1), ("reset", 1)]
)
def test_a_method_whose_name_says_weights_initialises_them(name: str, count: int) -> None:
    code = f"""\
import torch
from torch import nn
from layers import constant_init

class Sampling(nn.Module):
    def {name}(self):
        grid = torch.zeros(8, self.points, 2)
        for i in range(self.points):
            grid[:, i] *= i + 1
        constant_init(self.attention, 0.0)
        self.offsets.bias.data = grid.view(-1)
"""
    assert len(findings(code, "VEC01")) == count
