"""Real arguments, recorded in one run of a program under the probe, and what goes wrong on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest
from torchlint.runtime_check.equivalence import Sameness
from torchlint.runtime_check.function import FunctionError, FunctionVerdict, load, verify_function
from torchlint.runtime_check.function.record import Recorded, Run, record

MODEL = """
    import torch
    from torch import nn

    def scaled(x, weight, *, power=2.0, **more):
        return x * weight ** power

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((3,), 1.5))
            self.norm = nn.BatchNorm1d(3)
            self.jobs = iter([])

        @torch.no_grad()
        def frozen(self, x):
            return self.norm(x) * self.weight

        @classmethod
        def twice(cls, x):
            return x * 2

        def forward(self, x):
            return scaled(self.twice(x + self.frozen(x)), self.weight, power=2, unused=None)
"""
TRAIN = """
    import torch
    from model import Net

    def in_the_script(loss, scale=1.0):
        return loss * scale

    def main():
        torch.manual_seed(0)
        model = Net()
        del model.jobs
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(40):
            x = torch.randn(4 if step != 7 else 6, 3, requires_grad=True)
            loss = in_the_script(model(x.exp()).square().mean())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    if __name__ == "__main__":
        main()
"""
pytestmark = pytest.mark.usefixtures("forked")
COMMAND = (sys.executable, "train.py")


def write(folder: Path, train: str = TRAIN) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text(dedent(MODEL))
    (folder / "train.py").write_text(dedent(train))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def recorded(name: str, project: Path) -> Recorded:
    return record(load(name), Run(COMMAND, project, steps=20))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recorded]:
    """The calls of a function in the program as it stands: one run for each function, whoever asks."""
    folder = tmp_path_factory.mktemp("once") / "project"
    write(folder)

    @cache
    def run(name: str) -> Recorded:
        before = Path.cwd()
        os.chdir(folder)
        try:
            return recorded(name, folder)
        finally:
            os.chdir(before)

    return run


@pytest.fixture
def verdict(once: Callable[[str], Recorded]) -> Callable[..., FunctionVerdict]:
    """Compares a function with itself after one replacement in its file."""

    def run(name: str, before: str, after: str) -> FunctionVerdict:
        file, _, function = name.partition(":")
        text = Path(file).read_text()
        assert before in text
        Path("new.py").write_text(text.replace(before, after))
        found = once(name)
        return verify_function(load(name), load(f"new.py:{function}"), found.calls, seen=found.seen)

    return run


Verdict = Callable[..., FunctionVerdict]


def test_first_calls_new_shapes_and_rare_ones_are_kept(once: Callable[[str], Recorded]) -> None:
    found = once("model.py:scaled")
    assert (found.seen, found.unrecorded) == (20, {})
    assert [call.label for call in found.calls] == [f"call {n}" for n in range(1, 7)]
    assert len(found.calls) == len({1, 2, 3, 4, 8, 16})  # the other shape comes as the eighth
    assert {call.module for call in found.calls} == {"model"}


def test_keywords_and_the_gradients_of_what_was_computed(verdict: Verdict) -> None:
    same = verdict("model.py:scaled", "x * weight ** power", "x * weight.pow(power)")
    assert (same.verdict, same.seen) == (Sameness.IDENTICAL, 20)
    lost = verdict("model.py:scaled", "x * weight", "x * weight.detach()")
    assert lost.verdict is Sameness.DIFFERENT
    assert "gradient of weight: only in the original" in lost.reason or "gradient of weight" in lost.reason


def test_a_module_is_its_forward_with_helpers_of_each_version(verdict: Verdict) -> None:
    assert verdict("model.py:Net", "x + self", "x + 0 + self").verdict is Sameness.IDENTICAL
    found = verdict("model.py:Net", "return x * 2", "return x * 3")
    assert (found.verdict, found.exit_code) == (Sameness.DIFFERENT, 1)


def test_a_decorator_is_part_of_the_function(verdict: Verdict) -> None:
    """Without it gradients are recorded, which only the modes at the call of the decorated function can tell."""
    found = verdict("model.py:Net.frozen", "@torch.no_grad()", "@torch.enable_grad()")
    assert found.verdict is Sameness.DIFFERENT
    assert "the result: requires a gradient in one version only" in found.reason
    same = verdict("model.py:Net.frozen", "self.norm(x) * self.weight", "self.weight * self.norm(x)")
    assert same.verdict is Sameness.IDENTICAL
    buffers = verdict("model.py:Net.frozen", "self.norm(x) * ", "self.norm(x) * self.norm(x) / self.norm(x) *")
    assert any("running" in item.where for call in buffers.calls for item in call.differences)


def test_a_class_method_and_a_function_of_the_script_itself(verdict: Verdict) -> None:
    assert verdict("model.py:Net.twice", "x * 2", "x + x").verdict is Sameness.IDENTICAL
    assert verdict("train.py:in_the_script", "loss * scale", "scale * loss").verdict is Sameness.IDENTICAL
    assert verdict("train.py:in_the_script", "loss * scale", "loss").verdict is Sameness.IDENTICAL
    assert verdict("train.py:in_the_script", "loss * scale", "loss * 1.1").verdict is Sameness.DIFFERENT


FAILS = {
    "never called": (
        TRAIN.replace("model(x.exp())", "(model.weight * x)"),
        "model.py:scaled",
        "never called model.py:scaled",
    ),
    "a program that fails first": ("raise SystemExit('no data')", "model.py:scaled", "no data"),
    "arguments that cannot be stored": (
        TRAIN.replace("del model.jobs", "model.jobs = open('train.py')"),
        "model.py:Net",
        "no call of model.py:Net could be recorded: TypeError: cannot pickle",
    ),
}


@pytest.mark.parametrize("case", FAILS)
def test_no_call_to_compare(case: str, project: Path) -> None:
    program, name, message = FAILS[case]
    Path("train.py").write_text(dedent(program))
    with pytest.raises(FunctionError, match=message):
        recorded(name, project)


def test_a_program_that_fails_later_has_been_recorded(project: Path) -> None:
    Path("train.py").write_text(dedent(TRAIN).replace("optimizer.step()", "optimizer.step(); assert step < 2"))
    before = {file.name: file.read_bytes() for file in project.iterdir()}
    assert len(recorded("model.py:scaled", project).calls) == 3
    assert {file.name: file.read_bytes() for file in project.iterdir()} == before, "it runs in a copy"


def test_a_function_outside_of_the_project_is_not_in_its_copy(project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("def f(x): return x\n")
    with pytest.raises(FunctionError, match="is outside of"):
        recorded(str(tmp_path / "elsewhere.py") + ":f", project)


NAMES = {
    "model.py": "names no function",
    "gone.py:f": "there is no file gone.py",
    "no_such_module:f": "there is no Python file of a module no_such_module",
    "model.py:scald": "there is no `scald`; did you mean `scaled`?",
    "model.py:torch": "is no Python function, but module",
    "broken.py:f": "importing broken.py fails: ZeroDivisionError",
    "generator.py:f": "is a generator or coroutine",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_name(name: str) -> None:
    Path("broken.py").write_text("1 / 0\n")
    Path("generator.py").write_text("def f(x):\n    yield x\n")
    with pytest.raises(FunctionError, match=NAMES[name]):
        load(name)


def test_two_versions_of_one_package_use_their_own_neighbours(tmp_path: Path) -> None:
    for version, factor in (("old", 2), ("new", 3)):
        package = tmp_path / version / "pack"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "part.py").write_text(f"FACTOR = {factor}\n")
        (package / "main.py").write_text(
            "from .part import FACTOR\n\ndef f():\n    from pack import part\n    return part.FACTOR, FACTOR\n"
        )
    old, new = (load(str(tmp_path / version / "pack" / "main.py") + ":f") for version in ("old", "new"))
    for version, factor in ((old, 2), (new, 3), (old, 2)):
        with version.active():
            assert version.function() == (factor, factor)
    assert "pack" not in sys.modules
