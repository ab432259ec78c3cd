"""TRAIN04: the fix puts `eval()` before an evaluation and `train()` behind it."""

from __future__ import annotations

from textwrap import indent

import pytest
import torch

from tests.rules.train.evaluated_networks import LOOP, SETUP, VARIANTS
from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source


def test_training_mode_that_is_switched_back_on_is_not_switched_twice() -> None:
    code = (
        SETUP
        + """\
teacher = nn.Dropout()
teacher.eval()
for epoch in range(2):
    net.train()
    train_epoch()
    with torch.no_grad():
        shown = net(test_loader[0][0])
    net.train()
    print(shown)
"""
    )
    assert fixed(code, "TRAIN04") == code.replace("        shown =", "        net.eval()\n        shown =")


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_fixed_code_has_no_finding(code: str) -> None:
    after = fixed(SETUP + code, "TRAIN04")
    assert after != SETUP + code
    assert findings(after, "TRAIN04") == []


RECORDED = """\
modes = []
net.register_forward_hook(lambda module, args, out: modes.append((module.training, args[0] is probe)))
probe = test_loader[0][0]
"""


REPAIRED = [
    "a loop over test data",
    "a function that evaluates",
    "one function for both phases",
    "evaluation mode that is never left",
    "evaluation mode that a function does not leave",
]


@pytest.mark.parametrize("name", REPAIRED)
def test_the_fix_evaluates_in_evaluation_mode_and_trains_in_training_mode(name: str) -> None:
    names: dict[str, object] = {}
    exec(fixed(SETUP + RECORDED + VARIANTS[name], "TRAIN04"), names)
    modes = names["modes"]
    assert isinstance(modes, list)
    assert {training for training, is_test in modes if is_test} == {False}
    trained = [training for training, is_test in modes if not is_test][:3]
    assert not trained or name == "a loop over test data" or set(trained) == {True}


def test_the_fix_makes_results_repeatable() -> None:
    code = SETUP + "result = []\nfor x, y in test_loader:\n    result.append(net(x))\n"
    names: list[dict[str, torch.Tensor]] = [{}, {}]
    for seed, scope in enumerate(names):
        exec(fixed(code, "TRAIN04").replace("result = []", f"torch.manual_seed({seed})\nresult = []"), scope)
    assert all(map(torch.equal, names[0]["result"], names[1]["result"]))


def test_the_switch_above_the_epochs_moves_into_them() -> None:
    code = SETUP + VARIANTS["evaluation mode that is never left"]
    assert fixed(code.replace("for epoch in", "net.train()\nfor epoch in", 1), "TRAIN04") == fixed(code, "TRAIN04")


def test_is_never_safe() -> None:
    (finding,) = findings(SETUP + LOOP, "TRAIN04")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


def test_does_not_return_from_evaluation_past_the_switch() -> None:
    code = (
        SETUP
        + """\
def hits():
    for x, y in test_loader:
        return (net(x).argmax(1) == y).sum().item()

print(hits())
"""
    )
    assert fixed(code, "TRAIN04") == code


def test_of_two_networks_that_run_together_both_are_switched_or_none() -> None:
    both = SETUP + (
        "head = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))\n\n"
        "@torch.no_grad()\n"
        "def evaluate(x):\n"
        "    h = net(x)\n"
        "    for _ in range(3):\n"
        "        h = head(h)\n"
        "    return h\n\n"
        "for epoch in range(3):\n"
        "    net.train()\n"
        "    head.train()\n"
        "    train_epoch()\n"
        "    print(evaluate(torch.ones(1, 4)))\n"
    )
    found = lint(Source.from_text(both), Settings.selecting("TRAIN04"), strict=True, project=Project())
    assert len(found) == 2
    assert all(finding.fix is None for finding in found)
    alone = lint(
        Source.from_text(both.replace("    for _ in range(3):\n        h = head(h)\n", "")),
        Settings.selecting("TRAIN04"),
        strict=True,
        project=Project(),
    )
    assert [finding.fix is not None for finding in alone] == [True]


def test_a_call_in_a_loop_over_steps_is_left_to_the_reader() -> None:
    text = SETUP + (
        "@torch.no_grad()\n"
        "def generate(x, length):\n"
        "    for step in range(length):\n"
        "        x = torch.cat((x, net(x)), 1)[:, -4:]\n"
        "    return x\n\n"
        "for epoch in range(3):\n"
        "    net.train()\n"
        "    train_epoch()\n"
        "    print(generate(torch.ones(1, 4), 5))\n"
    )
    (finding,) = lint(Source.from_text(text), Settings.selecting("TRAIN04"), strict=True, project=Project())
    assert finding.fix is None


FEATURES = """\
def features():
    trained, tested = [], []
    for x, y in train_loader:
        trained.append(net(x).detach())
    {between}
    {header}
        for x, y in test_loader:
            tested.append(net(x).detach())
    return trained, tested
"""


def test_the_passes_that_belong_together_run_in_one_mode() -> None:
    code = FEATURES.format(between="print(len(trained))", header="with torch.no_grad():") + "made = features()\n"
    names: dict[str, list[tuple[bool, bool]]] = {}
    exec(fixed(SETUP + RECORDED + code, "TRAIN04"), names)
    assert [training for training, _ in names["modes"]] == [False] * 5


def test_one_of_two_passes_that_belong_together_is_not_switched_alone() -> None:
    code = SETUP + FEATURES.format(between="print(len(trained))", header="if len(test_loader):")
    assert len(findings(code, "TRAIN04")) == 1
    assert fixed(code, "TRAIN04") == code


@pytest.mark.parametrize("between", ["train_epoch()", "net.train()", "opt.step()"])
def test_what_comes_before_training_is_another_pass(between: str) -> None:
    code = SETUP + FEATURES.format(between=between, header="with torch.no_grad():")
    after = fixed(code, "TRAIN04")
    assert after != code
    assert after.index("trained.append") < after.index("net.eval()")


def test_a_pass_that_nobody_uses_lets_batch_norm_learn() -> None:
    code = SETUP + FEATURES.format(between="pass", header="with torch.no_grad():")
    after = fixed(code.replace("trained.append(net(x).detach())", "net(x)"), "TRAIN04")
    assert after.index("net(x)\n") < after.index("net.eval()")


@pytest.mark.parametrize(
    ("line", "is_fixed"), [("# net.eval()", False), ("# net.train(False)", False), ("# evaluates", True)]
)
def test_a_switch_that_was_commented_out_is_not_put_back(line: str, is_fixed: bool) -> None:
    test = f"def test():\n    {line}\n    for x, y in test_loader:\n        print((net(x).argmax(1) == y).sum())\n"
    code = f"{SETUP}teacher = nn.Dropout()\nteacher.eval()\n\n\n{test}\n\nnet.train()\ntrain_epoch()\ntest()\n"
    assert len(findings(code, "TRAIN04")) == 1
    assert (fixed(code, "TRAIN04") != code) is is_fixed


def test_a_network_that_a_loop_makes_is_not_switched_in_front_of_it() -> None:
    made = "model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))\n"
    loop = "for size in (2, 3):\n    for x, y in test_loader:\n{}        with torch.no_grad():\n"
    code = SETUP + loop + "            print(model(x).argmax(1) == y)\n"
    inside = code.format("        " + made)
    assert findings(inside, "TRAIN04")
    assert fixed(inside, "TRAIN04") == inside
    assert "model.eval()" in fixed(code.format("").replace("for size", made + "for size"), "TRAIN04")


LAST = """\
for x, y in train_loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
for x, y in test_loader:
    print((net(x).argmax(1) == y).sum())
"""


@pytest.mark.parametrize(
    ("code", "is_last"),
    [(LAST, True), (LAST + LAST, False), ("for epoch in range(3):\n" + indent(LAST, "    "), False)],
)
def test_a_script_that_ends_with_its_evaluation_is_left_in_evaluation_mode(code: str, is_last: bool) -> None:
    assert ("net.train()" not in fixed(SETUP + code, "TRAIN04", unsafe=True)) == is_last


BOTH_PHASES = """\
def run(batches, train):
    total = 0.0
    with torch.set_grad_enabled(train):
        for x, y in batches:
            loss = F.cross_entropy(net(x), y)
            if train:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item()
    return total

for epoch in range(2):
    {}
"""


@pytest.mark.parametrize(
    ("together", "is_fixed"),
    [
        ("trained, tested = run(train_loader, True), run(test_loader, False)", False),
        ("trained = run(train_loader, True)\n    tested = run(test_loader, False)", True),
    ],
)
def test_a_statement_that_trains_beside_is_not_switched(together: str, is_fixed: bool) -> None:
    code = SETUP + BOTH_PHASES.format(together)
    assert len(findings(code, "TRAIN04")) == 1
    after = fixed(code, "TRAIN04")
    assert (after != code) == is_fixed
    assert not is_fixed or after.index("run(train_loader, True)") < after.index("net.eval()")
