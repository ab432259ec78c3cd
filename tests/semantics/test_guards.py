"""Conditions: which of them make what they guard rare, and how loops with accumulation windows are read."""

from __future__ import annotations

import pytest

from tests.semantics.programs import model_of
from tests.support import findings
from torchlint.semantics.entities import Role

LOOP = """
import math, time, torch
from torch.utils.data import DataLoader

def is_due(step):
    if step < 10:
        return False
    return step % 10 == 0

def is_large(x):
    return x > 3

class Every:
    def __init__(self, n):
        self.n = n
    def __call__(self, step):
        return step % self.n == 0

every = Every(10)
for i, x in enumerate(DataLoader(dataset), 1):
    tenth = (i + 1) % 10 == 0
    quotient, rest = divmod(i, 10)
"""


def kinds_around(code: str) -> list[str]:
    model = model_of(LOOP + code)
    call = next(call for call in model.calls if call.callee == "builtins.print")
    return [guard.kind for guard in model.guards(call.node, model.loop(call.node))]


@pytest.mark.parametrize(
    "condition",
    [
        "global_step % args.n == 0",
        "not i % 10",
        "i and i % 5 == 0",
        "is_due(i)",
        "every(i)",
        "should_log(i)",
        "tenth",
        "tenth and master",
        "rest == 0",
        "divmod(i, 10)[1] == 0",
        "math.fmod(i, 10) == 0",
        "i & 15 == 0",
        "i % 10 == 0 or i == last",
        "args.verbose",
        "verbosity",
        "torch.distributed.get_rank() == 0 and i % 10 == 0",
        "i == 0 and rank == 0",
        "iteration in testing_iterations",
        "num_iters in chosen",
        "self.global_step in milestones and rank == 0",
        "i < 3",
        "i == len(train_loader) - 1",
        "i + 1 == len(self.train_loader)",
    ],
)
def test_what_runs_every_so_often(condition: str) -> None:
    assert kinds_around(f"    if {condition}:\n        print(x)\n") == ["log"]


@pytest.mark.parametrize(
    "code",
    [
        "    if i >= due:\n        due += 100\n        print(x)\n",
        "    if time.time() - last > 10:\n        last = time.time()\n        print(x)\n",
        "    count += 1\n    if count == n:\n        count = 0\n        print(x)\n",
        "    if not told:\n        told = True\n        print(x)\n",
        "    if i > due:\n        due *= 2\n        print(x)\n",
        "    if left > 0:\n        left -= 1\n        print(x)\n",
        "    if len(kept) == n:\n        print(x)\n        kept.clear()\n",
        "    if len(self.kept) >= 10:\n        self.kept = []\n        print(x)\n",
        "    if loss < best:\n        best = loss\n        print(x)\n",
        "    if name is not files.name:\n        print(x)\n        name = files.name\n",
        "    match i % 10:\n        case 0:\n            print(x)\n",
        "    i % 10 or print(x)\n",
        "    i % 10 == 0 and print(x)\n",
        "    value = print(x) if i % 10 == 0 else None\n",
        "    if i % 10 != 0:\n        continue\n    print(x)\n",
        "    if i % 10 != 0:\n        with lock:\n            continue\n    print(x)\n",
        "    if i % 10:\n        if a:\n            continue\n        elif b:\n            break\n        else:\n"
        "            continue\n    print(x)\n",
    ],
)
def test_ways_to_run_every_so_often(code: str) -> None:
    assert kinds_around(code) == ["log"]


@pytest.mark.parametrize("rest", ["elif b:\n            continue", "else:\n            count += 1"])
def test_a_branch_that_leaves_only_at_times_is_no_exit(rest: str) -> None:
    code = f"    if i % 10:\n        if a:\n            continue\n        {rest}\n    print(x)\n"
    assert kinds_around(code) == []


@pytest.mark.parametrize("condition", ["weight > 0", "weight"])
def test_a_weight_that_shrinks_stays_above_zero(condition: str) -> None:
    assert kinds_around(f"    if {condition}:\n        weight *= decay\n        print(x)\n") == ["other"]


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("is_large(i)", "other"),
        ("loss > 3", "other"),
        ("i > 0", "other"),
        ("len(kept) > 3", "other"),
        ("i < 300", "other"),
        ("epoch < 3", "other"),
        ("rank == 0", "rank"),
        ("rank == 0 and x is not None", "rank"),
        ("trainer.is_global_zero", "rank"),
        ("accelerator.is_main_process", "rank"),
        ("x is not None", "optional"),
        ("x is not y", "optional"),
        ("writer is not None", "optional"),
        ("args.use_wandb", "optional"),
        ("args.tensorboard_logging", "optional"),
        ("writer and rank == 0", "rank"),
        ("writer.every is not None", "log"),
        ("not args.verbose and writer", "log"),
        ("phase == 'train'", "phase"),
        ("phase in testing_phases", "phase"),
        ("step_name in several", "other"),
        ("name not in steps", "other"),
        ("torch.isnan(x).any() or x.max() > 3", "handler"),
        ("torch.isnan(x).any() or torch.isinf(x).any()", "handler"),
        ("torch.isnan(x).any() or i > 3", "other"),
        ("torch.isnan(x).any() and i > 3", "handler"),
        ("not math.isfinite(loss)", "handler"),
        ("math.isfinite(loss)", "other"),
        ("torch.isnan(x).sum() == 0", "other"),
    ],
)
def test_conditions_that_may_hold_in_every_iteration(condition: str, kind: str) -> None:
    assert kinds_around(f"    if {condition}:\n        x = x * 2\n        print(x)\n") == [kind]


@pytest.mark.parametrize(("subject", "kind"), [("phase", "phase"), ("x.shape", "other"), ("i % 10", "log")])
def test_the_cases_of_a_match_are_conditions(subject: str, kind: str) -> None:
    assert kinds_around(f"    match {subject}:\n        case 1:\n            print(x)\n") == [kind]


TRAINING = """
import torch
from torch import nn
from torch.utils.data import DataLoader

net = nn.Linear(2, 2).cuda()
opt = torch.optim.SGD(net.parameters(), lr=1)
loader = DataLoader(dataset, num_workers=2, pin_memory=True)

def window_ends(i):
    return (i + 1) % n == 0

def step_at(i):
    if (i + 1) % n == 0:
        opt.step()
        opt.zero_grad()

count = 0
for i, x in enumerate(loader):
    loss = net(x.cuda(non_blocking=True)).sum() / n
    loss.backward()
"""
WINDOWS = {
    "modulo": "    if (i + 1) % n == 0:\n        opt.step()\n        opt.zero_grad()\n",
    "the rest skipped": "    if (i + 1) % n != 0 and i + 1 != len(loader):\n        continue\n"
    "    opt.step()\n    opt.zero_grad()\n",
    "a helper that says when": "    if window_ends(i):\n        opt.step()\n        opt.zero_grad()\n",
    "a helper that steps": "    step_at(i)\n",
    "a list": "    kept.append(x)\n    if len(kept) == n:\n        opt.step()\n        opt.zero_grad()\n"
    "        kept.clear()\n",
    "a counter": "    count += 1\n    if count == n:\n        opt.step()\n        opt.zero_grad()\n        count = 0\n",
}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_gradients_that_are_accumulated_over_a_window_are_reset(window: str) -> None:
    assert findings(TRAINING + window, "TRAIN01") == []
    loops = [loop for loop in model_of(TRAINING + window).loops if not loop.is_comprehension]
    assert [loop.role for loop in loops] == [Role.STEPS]


@pytest.mark.parametrize("window", ["modulo", "a helper that says when", "a counter", "a list"])
def test_a_read_at_the_end_of_a_window_comes_with_every_update(window: str) -> None:
    code = TRAINING + WINDOWS[window].replace("opt.zero_grad()", "opt.zero_grad(); print(loss.item())")
    assert len(findings(code, "SYNC01")) == 1


def test_a_read_at_an_interval_beside_the_window_is_rare() -> None:
    assert findings(TRAINING + WINDOWS["modulo"] + "    if i % 100 == 0: print(loss.item())\n", "SYNC01") == []


def test_a_window_that_never_resets_is_found() -> None:
    code = TRAINING + "    if window_ends(i):\n        opt.step()\n"
    assert [found.code for found in findings(code.replace("        opt.zero_grad()\n", ""), "TRAIN01")] == ["TRAIN01"]


def test_what_a_broken_value_ends_is_no_condition_of_the_rest() -> None:
    assert kinds_around("    if torch.isnan(x).any():\n        continue\n    print(x)\n") == ["other"]
