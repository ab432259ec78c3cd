"""Planted truths: rewrites that are right are never called different, and wrong ones never the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
import torch
from torchlint.runtime_check.boot.torchlint_probe.recording import stored
from torchlint.runtime_check.equivalence import Sameness
from torchlint.runtime_check.function import Call, FunctionVerdict, load, verify_function

IDENTICAL, EQUIVALENT, DIFFERENT, UNKNOWN = (
    Sameness.IDENTICAL,
    Sameness.EQUIVALENT,
    Sameness.DIFFERENT,
    Sameness.UNKNOWN,
)
_numbers = itertools.count()
HEADER = """
import itertools
import random
import torch
import torch.nn.functional as F
from torch import nn

calls = itertools.count()
"""
Compare = Callable[..., FunctionVerdict]


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Writes two versions of `f` into modules of their own and replays one call on both."""
    monkeypatch.chdir(tmp_path)

    def run(old: str, new: str, *arguments: Any, header: str = "", name: str = "f") -> FunctionVerdict:
        files = []
        for version in (old, new):
            file = tmp_path / f"version_{next(_numbers)}.py"
            body = indent(dedent(version).strip(), "    ")
            function = f"def f({header}):\n{body}" if header else dedent(version)
            file.write_text(HEADER + function + "\n")
            files.append(load(f"{file.name}:{name}"))
        with files[0].active():
            data = stored((list(arguments), {}))
        return verify_function(*files, [Call(data, files[0].module.__name__, "the call")])

    return run


def wanting(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(3)).requires_grad_()


ROWS = "return torch.stack([x[i] * w / (x[i].pow(2).mean() + 1e-6).sqrt() for i in range(len(x))])"
BATCHED = "return x * w / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()"
TRUTHS = {
    "the same text": (ROWS, ROWS, IDENTICAL),
    "a loop over rows, batched": (ROWS, BATCHED, EQUIVALENT),
    "another epsilon": (ROWS, BATCHED.replace("1e-6", "1e-5"), DIFFERENT),
    "a lost gradient": (ROWS, BATCHED.replace("* w", "* w.detach()"), DIFFERENT),
    "a partly lost gradient": (ROWS, BATCHED.replace("x.pow(2)", "x.detach().pow(2)"), DIFFERENT),
    "another dim": (ROWS, BATCHED.replace("-1", "0"), DIFFERENT),
    "off by one": (ROWS, BATCHED.replace("return x", "return x.roll(1, 0)"), DIFFERENT),
    "a row too few": (ROWS, ROWS.replace("range(len(x))", "range(len(x) - 1)"), DIFFERENT),
    "a sign": (ROWS, BATCHED.replace("return x", "return -x"), DIFFERENT),
    "a mean for a sum": ("return (x * w).sum(-1)", "return (x * w).mean(-1) * x.shape[-1]", EQUIVALENT),
    "another order of a sum": ("return (x * w).sum()", "return (x * w).flip(0, 1).sum()", EQUIVALENT),
    "another order of products": ("return x * (w / 3)", "return x * w / 3", EQUIVALENT),
    "a matrix product": ("return torch.stack([r @ w for r in x])", "return x @ w", EQUIVALENT),
    "a constant that rounds": ("return x * 0.1 * w", "return x * 0.1000001 * w", DIFFERENT),
    "a lower precision": ("return x * w", "return (x.half() * w.half()).float()", DIFFERENT),
    "a cancelling variance": (
        "return (x + 1e3).var(0, correction=0) * w",
        "return ((x + 1e3).pow(2).mean(0) - (x + 1e3).mean(0).pow(2)) * w",
        DIFFERENT,
    ),
    "an unstable logsumexp": ("return torch.logsumexp(200 * x, 1)", "return (200 * x).exp().sum(1).log()", DIFFERENT),
    "zero but for rounding": (
        "return (x * w).sum(0) - (x * w).sum(0)",
        "return (x * w).sum(0) - (x.flip(0) * w).sum(0)",
        EQUIVALENT,
    ),
    "a dtype": ("return x * w", "return (x * w).double()", DIFFERENT),
    "a shape": ("return x.sum(0)", "return x.sum(0, keepdim=True)", DIFFERENT),
    "a tuple for a list": ("return x, w", "return [x, w]", DIFFERENT),
    "another key": ("return {'a': x}", "return {'b': x}", DIFFERENT),
    "a number for a tensor": ("return x.sum().detach()", "return x.sum().item()", DIFFERENT),
    "a gradient switched off": ("return x * w", "with torch.no_grad():\n    return x * w", DIFFERENT),
    "an exception in one": ("return x * w", "raise ValueError('no')", DIFFERENT),
    "the same exception": ("raise ValueError('yes')", "raise ValueError('no')", IDENTICAL),
    "another exception": ("raise ValueError('no')", "raise KeyError('no')", DIFFERENT),
    "a backward pass that fails": (
        "return x.exp()",
        "y = x.exp()\nz = y * 1\ny.detach().add_(0)\nreturn z",
        DIFFERENT,
    ),
    "integers": ("return x.argmax(1)", "return x.argmin(1)", DIFFERENT),
    "an index from a loop": ("return torch.stack([r.argmax() for r in x])", "return x.argmax(1)", IDENTICAL),
    "random numbers alike": ("return F.dropout(x)", "return F.dropout(x, 0.5, True)", IDENTICAL),
    "random numbers in another order": ("return F.dropout(x)", "return F.dropout(x.flip(0)).flip(0)", DIFFERENT),
    "one random number more": ("return x * w", "torch.rand(1)\nreturn x * w", DIFFERENT),
    "a random number of Python": ("return x * w", "random.random()\nreturn x * w", DIFFERENT),
    "not a number": ("return x * w", "return x * w + torch.where(x > 0, 0.0, float('nan'))", DIFFERENT),
    "an original that is not itself": ("return x + next(calls)", "return x + 1", UNKNOWN),
}


@pytest.mark.parametrize("truth", TRUTHS)
def test_a_rewrite_is_called_what_it_is(compare: Compare, truth: str) -> None:
    old, new, wanted = TRUTHS[truth]
    found = compare(old, new, wanting(5, 4), wanting(4), header="x, w")
    allowed = (IDENTICAL, EQUIVALENT) if wanted is EQUIVALENT else (wanted,)  # sums of few numbers may round alike
    assert found.verdict in allowed, (found.reason, found.calls)


EFFECTS = {
    "a copy in place of a write": ("x.mul_(2)\nreturn x", "x = x * 2\nreturn x", DIFFERENT),
    "a write in place of a copy": ("x = x * 2\nreturn x", "x.mul_(2)\nreturn x", DIFFERENT),
    "the same write": ("x.mul_(2)", "x.add_(x)", IDENTICAL),
    "a write through an alias": ("y[0] = 7\nreturn x.sum()", "s = x.sum()\ny[0] = 7\nreturn s", DIFFERENT),
    "reading before or after an alias is written": (
        "y.zero_()\nreturn x + 0",
        "r = x + 0\ny.zero_()\nreturn r",
        DIFFERENT,
    ),
    "a write to a part": ("x[1:] += 1", "for i in range(1, len(x)):\n    x[i] += 1", IDENTICAL),
    "a write to a part too small": ("x[1:] += 1", "for i in range(1, len(x) - 1):\n    x[i] += 1", DIFFERENT),
}


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("kind", ["plain", "computed with gradients"])
def test_arguments_that_are_written_to(compare: Compare, effect: str, kind: str) -> None:
    """`y` is the first row of `x`, in the same memory, also when the call is replayed."""
    old, new, wanted = EFFECTS[effect]
    x = wanting(4, 3) * 2 if kind == "computed with gradients" else wanting(4, 3).detach()
    found = compare(old, new, x, x.detach()[0], header="x, y")
    assert found.verdict is wanted, (found.reason, found.calls)


def test_the_gradient_of_a_tensor_that_was_computed_arrives(compare: Compare) -> None:
    found = compare("return x * 2", "return x.detach() * 2 + x - x.detach()", wanting(3) * 1, header="x")
    assert found.verdict is DIFFERENT
    assert "gradient of x" in found.reason


MODULE = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear, self.steps = nn.BatchNorm1d(4), nn.Linear(4, 4), 0
        self.cache = []
    def scaled(self, x): return x * SCALE
    def forward(self, x):
        self.steps += 1
        self.cache.append(x.shape)
        return self.linear(self.norm(self.scaled(x)))
"""
MODULES = {
    "itself": ("", "", IDENTICAL),
    "a method that it calls": ("SCALE", "3", DIFFERENT),
    "a buffer that is not updated": ("self.linear(self.norm(", "self.linear(self.norm.eval()(", DIFFERENT),
    "a lost counter": ("self.steps += 1", "pass", DIFFERENT),
    "a lost entry of a list": ("self.cache.append(x.shape)", "pass", DIFFERENT),
    "a detached parameter": (
        "return self.linear(",
        "return F.linear(bias=self.linear.bias, weight=self.linear.weight.detach(), input=",
        DIFFERENT,
    ),
    "the same by hand": (
        "return self.linear(",
        "return (lambda y: y @ self.linear.weight.T + self.linear.bias)(",
        None,
    ),
}


def compare_modules(old: str, new: str) -> FunctionVerdict:
    files = []
    for text in (old, new):
        file = Path(f"block_{next(_numbers)}.py")
        file.write_text(HEADER + text)
        files.append(load(f"{file}:Block"))
    with files[0].active():
        data = stored(([files[0].module.Block(), wanting(6, 4)], {}))
    return verify_function(*files, [Call(data, files[0].module.__name__, "the call")])


@pytest.mark.parametrize("change", MODULES)
def test_a_module_with_its_parameters_buffers_and_attributes(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before, after, wanted = MODULES[change]
    text = MODULE.replace("SCALE", "2") if before != "SCALE" else MODULE
    old, new = text.replace("SCALE", "2"), text.replace(before, after) if before else text
    found = compare_modules(old, new)
    assert found.verdict is wanted or (wanted is None and found.verdict in (IDENTICAL, EQUIVALENT)), found.reason


def test_what_two_versions_print_and_share_is_noted(compare: Compare) -> None:
    found = compare("return x[0]", "print('a row')\nreturn x[0].clone()", wanting(2, 2), header="x")
    assert found.verdict is IDENTICAL
    assert found.notes == (
        "the two print different text",
        "the result lies in the memory of x in the original only: writing to one changes the other",
    )


def test_integers_that_rounding_decides_leave_it_open(compare: Compare) -> None:
    """1 is lost beside 1e8 in float32, and not in float64."""
    x = torch.tensor([1e8, 1.0, -1e8])
    found = compare("return x[0] + x[1] + x[2] > 0.5", "return x[0] + x[2] + x[1] > 0.5", x, header="x")
    assert (found.verdict, found.exit_code) == (UNKNOWN, 3)
    assert "agree in float64" in found.reason


def test_a_function_that_fails_in_float64_is_not_judged_by_its_rounding(compare: Compare) -> None:
    check = "if x.dtype != torch.float32: raise TypeError('float32 only')\n"
    found = compare(check + "return x.sum()", check + "return x.flip(0).sum() * 1.0000001", wanting(999), header="x")
    assert found.verdict is UNKNOWN
    assert "in float64 it raises TypeError: float32 only" in found.reason


def test_half_precision_and_complex_numbers(compare: Compare) -> None:
    half = wanting(64, 8).detach().half().requires_grad_()
    assert compare("return x.sum(0)", "return x.flip(0).sum(0)", half, header="x").verdict in (IDENTICAL, EQUIVALENT)
    assert compare("return x.sum(0)", "return x[1:].sum(0)", half, header="x").verdict is DIFFERENT
    waves = torch.complex(wanting(8).detach(), wanting(8).detach() + 1).requires_grad_()
    assert compare("return x * x.conj()", "return x.abs() ** 2 + 0j", waves, header="x").verdict is EQUIVALENT
    assert compare("return x * x.conj()", "return x * x", waves, header="x").verdict is DIFFERENT
