"""Each fix by itself and all together, on one small program whose rewrites are known to be right or wrong."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from torchlint.runtime_check import Candidate, FixStatus, FixVerdict, Options, Overall, Verdict, verify_fixes
from torchlint.runtime_check.equivalence import Sameness

pytestmark = pytest.mark.usefixtures("forked")

PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(40):
    x = torch.rand(8, 4)
    loss = (model(x) / (x.norm() + 1e-6)).square().mul(1 / 3).mean().mul(3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
    if step < 0:
        print(loss.item())
print(f"{losses[0].item():.3f}")
"""
REWRITES = {
    "leak": ("losses.append(loss)", "losses.append(loss.detach())"),
    "rounding": (".mul(1 / 3).mean().mul(3)", ".mean()"),
    "epsilon": ("1e-6", "1e-4"),
    "broken": ("torch.rand(8, 4)", "torch.rnd(8, 4)"),
    "dead": ("print(loss.item())", "print(loss.detach())"),
}


def candidate(name: str) -> Candidate:
    old, _ = REWRITES[name]
    line = PROGRAM[: PROGRAM.index(old)].count("\n") + 1
    return Candidate(name, "train.py", line, frozenset({line}))


def rewrite(chosen: Collection[Candidate]) -> dict[Path, str]:
    text = PROGRAM
    for one in chosen:
        old, new = REWRITES[one.code]
        assert old in text
        text = text.replace(old, new)
    return {Path("train.py"): text}


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    root = tmp_path_factory.mktemp("project")
    (root / "train.py").write_text(PROGRAM)
    options = Options(steps=12, warmup=2, blocks=0, timeout=120.0)
    return verify_fixes(root, [candidate(name) for name in REWRITES], rewrite, [sys.executable, "train.py"], options)


def fix(verdict: Verdict, name: str) -> FixVerdict:
    return next(fix for fix in verdict.fixes if fix.fix.code == name)


@pytest.mark.parametrize(("name", "sameness"), [("leak", Sameness.IDENTICAL), ("rounding", Sameness.ROUNDING)])
def test_a_right_fix_is_kept(verdict: Verdict, name: str, sameness: Sameness) -> None:
    found = fix(verdict, name)
    assert (found.status, found.reason) == (FixStatus.KEPT, "")
    assert found.equivalence is not None
    assert found.equivalence.verdict is sameness


def test_what_a_fix_gains_is_said_of_it_alone(verdict: Verdict) -> None:
    assert fix(verdict, "leak").gained == ("less memory",)
    assert fix(verdict, "rounding").gained == ("less memory", "fewer operations")


def test_a_change_that_rounding_hides_is_found_in_float64(verdict: Verdict) -> None:
    found = fix(verdict, "epsilon")
    assert found.status is FixStatus.REFUSED
    assert found.equivalence is not None
    assert "float64" in found.equivalence.reason
    assert found.equivalence.loss_distance < 1e-4
    assert found.equivalence.double_distance is not None
    assert found.equivalence.double_distance > 1e-9


def test_the_first_tensor_that_differs_is_named(verdict: Verdict) -> None:
    equivalence = fix(verdict, "epsilon").equivalence
    assert equivalence is not None
    assert equivalence.first_tensor is not None
    assert (equivalence.first_tensor.step, equivalence.first_tensor.name) == (1, "0.weight")


def test_a_fix_that_breaks_the_program_is_refused(verdict: Verdict) -> None:
    assert fix(verdict, "broken").status is FixStatus.REFUSED
    assert fix(verdict, "broken").reason == "the rewritten program does not run: exit code 1"


def test_nothing_is_said_of_a_fix_whose_lines_did_not_run(verdict: Verdict) -> None:
    assert fix(verdict, "dead").status is FixStatus.NOT_RUN
    assert fix(verdict, "dead").reason == "not run by this command in its first 12 steps (more with --steps)"


@pytest.mark.parametrize(("steps", "so_far"), [(40, " in its first 40 steps (more with --steps)"), (60, "")])
def test_where_the_program_was_stopped_more_steps_may_come_to_the_lines_of_a_fix(
    tmp_path: Path, steps: int, so_far: str
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    options = Options(steps=steps, warmup=2, blocks=0, timeout=120.0)
    found = verify_fixes(tmp_path, [candidate("dead")], rewrite, [sys.executable, "train.py"], options)
    assert found.reasons == (f"the command runs no line that a fix changes{so_far}",)


def test_the_verdict_is_that_of_the_fixes_that_are_kept(verdict: Verdict) -> None:
    assert [kept.code for kept in verdict.kept] == ["leak", "rounding"]
    assert verdict.overall is Overall.ACCEPT
    assert verdict.reasons == ("less memory", "fewer operations")
