"""MEM05: which statements its fix puts under one `no_grad`, and which it leaves."""

from __future__ import annotations

import pytest

from tests.rules.mem.recorded_evaluations import SETUP
from tests.support import findings, fixed


def test_neighbouring_statements_go_into_one_block() -> None:
    training = "G, H, D = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(4, 1)\nfixed = torch.randn(2, 3)\n"
    training += "for step in range(4):\n    opt.zero_grad()\n    D(G(torch.randn(2, 3)) + H(fixed)).mean().backward()\n"
    training += "    opt.step()\n    if step % 2 == 0:\n"
    first, second = "a = G(fixed).detach().numpy()\n", "b = H(fixed).detach().numpy()\n"
    ends = "        print(a, b)\n"
    block = f"        with torch.no_grad():\n            {first}            {second}".replace(".detach()", "")
    assert (
        fixed(f"{SETUP}{training}        {first}        {second}{ends}", "MEM05", "MEM09")
        == SETUP + training + block + ends
    )
    apart = f"        {first}        print(a)\n        {second}        print(b)\n"
    assert fixed(SETUP + training + apart, "MEM05", "MEM09").count("with torch.no_grad():") == 2


def test_branches_that_only_evaluate_go_into_one_block() -> None:
    training = "G, D = nn.Linear(3, 4), nn.Linear(4, 1)\nfixed = torch.randn(2, 3)\nfor step in range(4):\n"
    training += "    opt.zero_grad()\n    D(G(torch.randn(2, 3))).mean().backward()\n    opt.step()\n"
    first, second = "a = G(fixed)[0].cpu().data.numpy()\n", "a = G(fixed).data.numpy()\n"
    branches = f"    if step % 2 == 0:\n        {first}    else:\n        {second}"
    block = (
        f"    with torch.no_grad():\n        if step % 2 == 0:\n            {first}        else:\n            {second}"
    )
    ends = "    print(a)\n"
    after = SETUP + training + block.replace(".data", "") + ends
    assert fixed(SETUP + training + branches + ends, "MEM05", "MEM09") == after
    shown = branches.replace(first, first + "        print(step)\n")
    assert fixed(SETUP + training + shown + ends, "MEM05", "MEM09").count("with torch.no_grad():") == 1


@pytest.mark.parametrize(
    ("beside", "is_fixed"),
    [
        ("    pool.put(G(fixed))\n", False),
        ("    pool.put(H(fixed))\n", True),
        ("    D(G(fixed)).mean().backward()\n", True),
    ],
    ids=["keeps its graph", "of another network", "is trained from"],
)
def test_a_pass_beside_that_would_keep_its_graph(beside: str, is_fixed: bool) -> None:
    code = "from queue import SimpleQueue\n" + SETUP + "G, H, D = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(4, 1)\n"
    code += "fixed, pool = torch.randn(2, 3), SimpleQueue()\nfor step in range(4):\n    opt.zero_grad()\n"
    code += "    D(G(torch.randn(2, 3))).mean().backward()\n    opt.step()\n"
    code += "    a = G(fixed).detach().numpy()\n" + beside + "    print(a)\n"
    assert len(findings(code, "MEM05", "MEM09")) == 1
    assert ("with torch.no_grad():" in fixed(code, "MEM05", "MEM09")) is is_fixed


def test_a_pass_on_attacked_inputs_beside_one_on_clean_ones() -> None:
    code = (
        SETUP
        + """\
def attack(net, x, y):
    delta = torch.zeros_like(x, requires_grad=True)
    F.cross_entropy(net(x + delta), y).backward()
    return delta.grad.sign() * 0.1

def main(epochs):
    for epoch in range(epochs):
        for x, y in loader:
            if epoch < 3:
                robust = F.cross_entropy(model(x + attack(model, x, y)), y)
            opt.zero_grad()
            robust.backward()
            opt.step()
        model.eval()
        total = robust_total = 0
        for x, y in val_loader:
            delta = attack(model, x, y).detach()
            robust_out = model(x + delta)
            robust = F.cross_entropy(robust_out, y)
            out = model(x)
            loss = F.cross_entropy(out, y)
            total += loss.item()
            robust_total += robust.item()
        print(total, robust_total)
"""
    )
    assert findings(code, "MEM05", "MEM09")
    assert "no_grad" not in fixed(code, "MEM05", "MEM09")


@pytest.mark.parametrize(("other", "is_fixed"), [("pool, a = 1, G(fixed)", False), ("b = G(fixed)", True)])
def test_a_branch_that_makes_the_same_and_would_keep_its_graph(other: str, is_fixed: bool) -> None:
    code = (
        SETUP + "G, D = nn.Linear(3, 4), nn.Linear(4, 1)\nfixed, seen = torch.randn(2, 3), []\nfor step in range(4):\n"
    )
    code += "    opt.zero_grad()\n    D(G(torch.randn(2, 3))).mean().backward()\n    opt.step()\n"
    code += f"    if step % 2:\n        a = G(fixed).detach()\n    else:\n        {other}\n        seen.append(a)\n"
    assert ("with torch.no_grad():" in fixed(code, "MEM05", "MEM09")) is is_fixed


def test_a_branch_of_a_training_step_that_adds_to_its_loss_is_no_evaluation() -> None:
    """What it adds is lost, since the loss is written anew: an oversight, which `no_grad` would only cover up."""
    step = (
        SETUP
        + """\
def train(x, y, masked):
    loss = 0
    if masked:
        for part in x:
            {target} += F.mse_loss(model(part[None]), model(part[None]).round())
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss
"""
    )
    code = step.format(target="loss")
    assert len(findings(code, "MEM05", "MEM09")) == 1
    assert fixed(code, "MEM05", "MEM09") == code


MEASURED = """
    import torch

    def train(model, data, optimizer):
        best = 0.0
        for epoch in range(3):
            optimizer.zero_grad()
            model.loss(model.encode(data)).backward()
            optimizer.step()
            if epoch % 2:
                model.eval()
                codes = model.encode(data)
                {0}
                best = max(best, found)
        return best
"""


def test_an_evaluation_that_the_network_goes_on_with_is_not_wrapped_by_halves() -> None:
    body = "found = model.measure(codes).item()"
    code = MEASURED.format(body)
    assert [finding.fix for finding in findings(code, "MEM05", "MEM09")] == [None]
    for other in ("found = codes.mean().item()", "with torch.no_grad():\n                    " + body):
        assert "with torch.no_grad():\n                codes =" in fixed(MEASURED.format(other), "MEM05", "MEM09")


SCATTERED = """
def losses(net, x, y, is_train):
    out = net(x)
    print(out.shape)
    loss = crit(out, y)
    total = loss.item()
    {more}
    if is_train:
        opt.zero_grad()
        loss.backward()
        opt.step()
    return total

for x, y in loader:
    losses(model, x, y, True)
model.eval()
for x, y in loader:
    losses(model, x, y, False)
"""


@pytest.mark.parametrize(("more", "is_fixed"), [("loss = loss + crit(net(x + 1), y)", False), ("pass", True)])
def test_one_switch_for_several_places_is_for_the_user_to_set(more: str, is_fixed: bool) -> None:
    code = SETUP + SCATTERED.format(more=more)
    assert len(findings(code, "MEM05", "MEM09")) == 1
    assert ("set_grad_enabled" in fixed(code, "MEM05", "MEM09")) is is_fixed


def test_a_condition_is_not_given_its_parentheses_twice() -> None:
    code = SETUP + SCATTERED.format(more="pass").replace("if is_train:", "if (is_train):")
    assert "with torch.set_grad_enabled(is_train):\n" in fixed(code, "MEM05", "MEM09")


LONG = """
def train_model(model, loaders, optimizer, crit):
    for phase in ["train", "val"]:
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            if phase == "train":
                {first}
            else:
                out = model(x, None)
            loss = crit(out, y)
{filler}
            if phase == "train":
                loss.backward()
                optimizer.step()
            print(loss.item())
"""


def test_branches_that_run_a_network_go_under_one_switch() -> None:
    code = SETUP + LONG.format(first="out = model(x, y)", filler="            print()\n" * 30)
    switch = '            with torch.set_grad_enabled(phase == "train"):\n                if phase == "train":\n'
    assert switch in fixed(code, "MEM05", "MEM09")
    assert fixed(code, "MEM05", "MEM09").count("set_grad_enabled") == 1


def test_nothing_is_switched_where_its_phase_is_decided_already() -> None:
    code = SETUP + LONG.format(
        first="x = x + 1\n                out = model(x, y)", filler="            print()\n" * 30
    )
    assert findings(code, "MEM05", "MEM09")
    assert fixed(code, "MEM05", "MEM09") == code


@pytest.mark.parametrize(
    ("other", "count"),
    [("with torch.no_grad():\n                    out = model(x, y)", 0), ("out = model(x, None)", 1)],
)
def test_a_network_that_runs_in_the_phase_that_goes_back_has_its_gradients(other: str, count: int) -> None:
    code = LONG.replace("out = model(x, None)", other)
    code = SETUP + code.format(first="out = model(x, y)", filler="            print()\n")
    assert len(findings(code, "MEM05", "MEM09")) == count


DROPPED = """
def train(model, valid_loader):
    for x, y in valid_loader:
        opt.zero_grad()
        crit(model(x), y).backward()
        opt.step()
    model.eval()
    total = 0
    torch.no_grad()  # less memory
{between}    for x, y in valid_loader:
        total += crit(model(x), y).item()
    return total
"""


@pytest.mark.parametrize(("between", "is_used"), [("", True), ("\n", True), ("    print(total)\n", False)])
def test_a_no_grad_that_does_nothing_becomes_the_header(between: str, is_used: bool) -> None:
    after = fixed(SETUP + DROPPED.format(between=between), "MEM05", "MEM09")
    header = "    with torch.no_grad():  # less memory\n        for x, y in valid_loader:\n"
    assert (header in after) is is_used
    assert after.count("with torch.no_grad():") == 1


def test_a_no_grad_that_does_nothing_goes_from_a_decorated_function() -> None:
    code = "def evaluate(model, loader):\n    torch.no_grad(){}\n    model.eval()\n"
    code += "    return [model(x).argmax(1).tolist() for x, y in loader]\n"
    assert "    torch.no_grad()" not in fixed(SETUP + code.format(""), "MEM05", "MEM09")
    assert "    torch.no_grad()  # saves memory" in fixed(SETUP + code.format("  # saves memory"), "MEM05", "MEM09")


def test_a_loop_is_not_switched_where_the_same_network_runs_beside_it_with_a_graph() -> None:
    code = SETUP + "model.eval()\nx = torch.ones(2, 4)\nfirst = model(x).argmax(1)\n"
    code += "for _ in range(9):\n    print(model(x).argmax(1).tolist(), first)\n"
    assert findings(code, "MEM05", "MEM09")
    assert fixed(code, "MEM05", "MEM09") == code
    assert "with torch.no_grad():" in fixed(code.replace("first = model(x)", "first = x"), "MEM05", "MEM09")


CHOSEN = """\
import torch
from torch import nn
class Namer(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 2)
    def forward(self, x, hidden):
        return torch.argmax(self.line(x)), hidden
namer, other, crit = Namer(), nn.Linear(2, 2), nn.NLLLoss()
opt = torch.optim.SGD(namer.parameters(), lr=1)
for i in range(10):
    language, word = torch.ones(1), torch.ones(3, 2)
    hidden = torch.ones(2)
    for letter in word:
        out, hidden = namer(letter, hidden)
    loss = {}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("loss", "is_fixed"),
    [("crit(out, language)", False), ("crit(out + other(word), language)", True)],
    ids=["all that the step runs", "beside a network that is trained"],
)
def test_a_step_whose_loss_has_no_gradient_is_no_evaluation(loss: str, is_fixed: bool) -> None:
    """Of the largest position no gradient is taken, which the program will find out by itself."""
    code = CHOSEN.format(loss)
    assert findings(code, "MEM05", "MEM09")
    assert ("no_grad" in fixed(code, "MEM05", "MEM09")) is is_fixed


def test_neighbouring_loops_go_into_one_block() -> None:
    training = "def run():\n    for x, y in loader:\n        opt.zero_grad()\n        crit(model(x), y).backward()\n"
    training += "        opt.step()\n    model.eval()\n    seen, kept = [], []\n"
    loops = "    # of those seen\n    for x, y in loader:\n        seen.append(model(x).argmax(1))\n\n"
    loops += "    # of those held out\n    for x, y in val_loader:\n        kept.append(model(x).argmax(1))\n"
    ends = "    return seen, kept\n\nprint(run())\n"
    lines = ["    # of those seen", "    with torch.no_grad():"]
    lines += [f"    {line}" if line else "" for line in loops.splitlines()[1:]]
    inside = "\n".join(lines) + "\n"
    assert fixed(SETUP + training + loops + ends, "MEM05", "MEM09") == SETUP + training + inside + ends
    apart = loops.replace("\n    # of those held out", "    opt.zero_grad()")
    assert fixed(SETUP + training + apart + ends, "MEM05", "MEM09").count("with torch.no_grad():") == 2


ADAPTED = """
import torch
import learn2learn

def fast_adapt(batch, learner, loss):
    {use}
    return loss(learner(batch[0]), batch[1])

def main(tasks, net: torch.nn.Module):
    learned = learn2learn.algorithms.MAML(net.cuda(), lr=0.1)
    loss = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(learned.parameters(), 0.1)
    for task in range(9):
        optimizer.zero_grad()
        fast_adapt(tasks.sample(), learned.clone(), loss).backward()
        optimizer.step()
    total = 0.0
    for task in range(9):
        total += fast_adapt(tasks.sample(), learned.clone(), loss).item()
    return total
"""


@pytest.mark.parametrize(("method", "count"), [("adapt", 0), ("describe", 1)])
def test_a_network_out_of_sight_that_adapts_itself_takes_gradients(method: str, count: int) -> None:
    code = ADAPTED.format(use=f"learner.{method}(loss(learner(batch[0]), batch[1]))")
    assert len(findings(code, "MEM05")) == count


NESTED = """\
def validate(net, judge, batches):
    net.eval()
    total = 0
    for x, y in batches:

        def reward(z):
            z = z.round()
            return (judge(z).argmax(1) == y).sum().item()

        total += reward(net(x).argmax(1, keepdim=True).float())
    return total

def learn(net, judge, batches):
    for x, y in batches:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    print(validate(net, judge, batches))

learn(nn.Linear(4, 3), nn.Linear(1, 3).eval(), loader)
"""


def test_a_function_inside_of_what_goes_into_a_block_is_indented_with_it() -> None:
    code = fixed(SETUP + NESTED, "MEM05", "MEM09")
    assert code.count("torch.no_grad()") == 1
    compile(code, "module.py", "exec")


TARGETS = """\
actor = nn.Linear(4, 8)
for state, noise in loader:
    wanted = (actor(state) + noise).clamp(
        -1, 1
    )
{between}    {header}:
        # of the next step
        target = model(wanted)
    loss = (model(state) - target).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("between", "header", "is_one"),
    [
        ("", "with torch.no_grad()", True),
        ("\n", "with torch.no_grad()", True),
        ("    # the target\n", "with torch.no_grad()", False),
        ("", "with torch.no_grad(), torch.autocast('cuda')", False),
        ("    print(noise)\n", "with torch.no_grad()", False),
    ],
)
def test_a_statement_goes_into_the_block_below_that_switches_gradients_off(
    between: str, header: str, is_one: bool
) -> None:
    code = SETUP + TARGETS.format(between=between, header=header)
    after = fixed(code, "MEM05", "MEM09")
    start = "    with torch.no_grad():\n        wanted = (actor(state) + noise).clamp(\n            -1, 1\n"
    assert start in after
    assert after.count("with torch.no_grad()") == (1 if is_one else 2)
    assert fixed(after, "MEM05", "MEM09") == after
