"""MEM05: what its fix writes, and that the fixed program computes the same."""

from __future__ import annotations

import pytest
import torch

from tests.rules.mem.recorded_evaluations import EVALUATIONS, SETUP
from tests.rules.mem.recorded_while_training import WHILE_TRAINING
from tests.support import findings, fixed

NOT_REWRITTEN = {
    "a statement that has gradients to record": """\
target = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
for x, y in loader:
    loss = F.mse_loss(model(x).max(1)[0], target(x).max(1)[0].detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "somebody has taken the switch out": """def test(net, loader):
    net.eval()
    for x, y in loader:
        # with torch.no_grad():
        hits = net(x).argmax(1) == y
        net.train()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        print(hits.float().mean().item())
""",
    "somebody has taken the switch out of the function": """def test(net, loader):
    net.eval()
    hits = 0
    # with torch.no_grad():
    for x, y in loader:
        hits += (net(x).argmax(1) == y).sum()
    return hits.item()
""",
    "other code runs at every yield": """def pseudo_labels(net, loader):
    net.eval()
    for x, y in loader:
        yield x, net(x).argmax(1)
""",
    "a part of the function switches autograd off itself": """def test(net, x, loader):
    net.eval()
    print(net(x).argmax(1))
    with torch.no_grad():
        for x, y in loader:
            print((net(x).argmax(1) == y).float().mean().item())
""",
    "other tasks run at every await": """async def monitor(net, queue):
    net.eval()
    hits = 0
    while True:
        x = await queue.get()
        if x is None:
            break
        hits += net(x).argmax(1).sum()
    return hits.item()
""",
}


LEARNS = """\
    loss = F.mse_loss(model(x), goal + rest)
    opt.zero_grad()
    loss.backward()
    opt.step()
result = loss.detach()
"""
REWRITES = {
    "a statement right below one that is without gradients": (
        """\
for x, y in loader:
    with torch.no_grad():
        goal = model(x)

    rest = (goal - model(2 * x)).detach()
"""
        + LEARNS,
        """\
for x, y in loader:
    with torch.no_grad():
        goal = model(x)

        rest = goal - model(2 * x)
"""
        + LEARNS,
    ),
    "a statement below a comment of its own": (
        """\
for x, y in loader:
    with torch.no_grad():
        goal = model(x)
    # what is left
    rest = 3 * (goal - model(2 * x)).detach()
"""
        + LEARNS,
        """\
for x, y in loader:
    with torch.no_grad():
        goal = model(x)
    # what is left
    with torch.no_grad():
        rest = 3 * (goal - model(2 * x))
"""
        + LEARNS,
    ),
    "what is cut off in a whole function": (
        """\
def evaluate(model, loader):
    model.eval()
    correct, weight = 0, model[0].weight
    for x, y in loader:
        out = model(x)
        best = out.data.max(1)[1]
        correct += (best == y).sum().item() + model(x).detach().sum().item() + weight.data.sum().item()
        first = out[0]
        correct += len(first.squeeze().cpu().data.numpy()) + len(model(x).sum(1).detach())
        scaled = (out + 0.5) * 2
        correct += len(scaled.data)
    return correct

result = evaluate(model, val_loader)
""",
        """\
@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct, weight = 0, model[0].weight
    for x, y in loader:
        out = model(x)
        best = out.max(1)[1]
        correct += (best == y).sum().item() + model(x).sum().item() + weight.data.sum().item()
        first = out[0]
        correct += len(first.squeeze().cpu().numpy()) + len(model(x).sum(1))
        scaled = (out + 0.5) * 2
        correct += len(scaled)
    return correct

result = evaluate(model, val_loader)
""",
    ),
    "a whole function": (
        """\
def evaluate(model, loader):
    # accuracy in percent
    model.eval()
    correct = 0
    for x, y in loader:
        out = model(x)
        correct += (out.argmax(1) == y).sum().item()
    return correct

result = evaluate(model, val_loader)
""",
        """\
@torch.no_grad()
def evaluate(model, loader):
    # accuracy in percent
    model.eval()
    correct = 0
    for x, y in loader:
        out = model(x)
        correct += (out.argmax(1) == y).sum().item()
    return correct

result = evaluate(model, val_loader)
""",
    ),
    "one epoch that trains where it gets an optimizer": (
        """\
def run(batches, optimizer=None):
    total = 0.0
    for x, y in batches:
        loss = crit(model(x), y)
        if optimizer:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total

result = [run(loader, opt), run(val_loader)]
""",
        """\
def run(batches, optimizer=None):
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in batches:
            loss = crit(model(x), y)
            if optimizer:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total

result = [run(loader, opt), run(val_loader)]
""",
    ),
    "a static method": (
        """\
class Task:
    @staticmethod
    def evaluate(net, loader):
        net.eval()
        return [net(x).argmax(1).tolist() for x, y in loader]

result = Task.evaluate(model, val_loader)
""",
        """\
class Task:
    @staticmethod
    @torch.no_grad()
    def evaluate(net, loader):
        net.eval()
        return [net(x).argmax(1).tolist() for x, y in loader]

result = Task.evaluate(model, val_loader)
""",
    ),
    "a loop inside the training function": (
        """\
def train():
    for x, y in loader:
        opt.zero_grad()
        crit(model(x), y).backward()
        opt.step()
    model.eval()
    val_loss = 0.0
    # every batch counts the same
    for x, y in val_loader:
        # forward
        out = model(x)
        val_loss += crit(out, y).item()  # of this batch
    return val_loss

result = train()
""",
        """\
def train():
    for x, y in loader:
        opt.zero_grad()
        crit(model(x), y).backward()
        opt.step()
    model.eval()
    val_loss = 0.0
    # every batch counts the same
    with torch.no_grad():
        for x, y in val_loader:
            # forward
            out = model(x)
            val_loss += crit(out, y).item()  # of this batch
    return val_loss

result = train()
""",
    ),
    "a comprehension": (
        "model.eval()\nresult = [model(x).argmax(1).tolist() for x, _ in val_loader]\n",
        "model.eval()\nwith torch.no_grad():\n    result = [model(x).argmax(1).tolist() for x, _ in val_loader]\n",
    ),
    "two phases": (
        """\
result = []
for phase in ["train", "val"]:
    model.train(phase == "train")
    for x, y in loader:
        loss = crit(model(x), y)
        if phase == "train":
            opt.zero_grad()
            loss.backward()
            opt.step()
        result.append(loss.item())
""",
        """\
result = []
for phase in ["train", "val"]:
    model.train(phase == "train")
    with torch.set_grad_enabled(phase == "train"):
        for x, y in loader:
            loss = crit(model(x), y)
            if phase == "train":
                opt.zero_grad()
                loss.backward()
                opt.step()
            result.append(loss.item())
""",
    ),
}


@pytest.mark.parametrize("code", NOT_REWRITTEN.values(), ids=NOT_REWRITTEN.keys())
def test_does_not_switch_gradients_off_for_others(code: str) -> None:
    assert len(findings(SETUP + code, "MEM05", "MEM09")) == 1
    assert fixed(SETUP + code, "MEM05", "MEM09") == SETUP + code


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    assert fixed(SETUP + before, "MEM05", "MEM09") == SETUP + after


def test_a_long_loop_is_not_indented_as_a_whole() -> None:
    filler = "".join(f"    shown = {number}\n" for number in range(40))
    before = "    hits = (model(x).argmax(1) == y).sum().item()\n"
    after = "    with torch.no_grad():\n        hits = (model(x).argmax(1) == y).sum().item()\n"
    head = SETUP + "model.eval()\nfor x, y in val_loader:\n" + filler
    assert (
        fixed(head + before + "    print(hits, shown)\n", "MEM05", "MEM09") == head + after + "    print(hits, shown)\n"
    )


def test_a_file_of_another_library_is_left_alone() -> None:
    code = "import paddle\n\ndef test(loader, net):  # as with Pytorch\n    net.eval()\n"
    code += "    return [net(x).sum().item() for x in loader]\n"
    assert findings(code, "MEM05", "MEM09") == []
    assert len(findings(code.replace("import paddle", "import paddle\nimport torch"), "MEM05", "MEM09")) == 1


def test_is_no_safe_fix() -> None:
    code = SETUP + REWRITES["a whole function"][0]
    assert fixed(code, "MEM05", "MEM09", unsafe=False) == code


@pytest.mark.parametrize("before", [before for before, _ in REWRITES.values()], ids=REWRITES.keys())
def test_same_result(before: str) -> None:
    results = []
    for code in (SETUP + before, fixed(SETUP + before, "MEM05", "MEM09")):
        names: dict[str, object] = {}
        exec(code, names)
        results.append((names["result"], names["model"]))
    (first, trained), (second, trained_too) = results
    assert first == second
    assert all(map(torch.equal, trained.parameters(), trained_too.parameters()))  # type: ignore[attr-defined]


PARTLY_OFF = "only the metric is without gradients"  # is left to its author
RECORDED = {name: code for name, code in {**EVALUATIONS, **WHILE_TRAINING}.items() if name != PARTLY_OFF}


@pytest.mark.parametrize("variant", RECORDED.values(), ids=RECORDED.keys())
def test_fixed_code_has_no_finding(variant: str) -> None:
    assert findings(fixed(SETUP + variant, "MEM05", "MEM09"), "MEM05", "MEM09") == []


@pytest.mark.parametrize(
    ("imports", "spelling"),
    [("import torch as th", "th.no_grad"), ("from torch import no_grad, nn\nimport torch", "no_grad")],
    ids=["an alias", "a name"],
)
def test_spells_torch_as_the_file_does(imports: str, spelling: str) -> None:
    code = f"""\
{imports}

def evaluate(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x).argmax(1))
"""
    assert f"@{spelling}()\ndef evaluate" in fixed(code, "MEM05", "MEM09")


GUARDED = """\
import queue

try:
    import torch
    from torch import nn
except ImportError:
    pass


class Service:
    def __init__(self):
        self.model = nn.Linear(3, 3)
        self.model.eval()

    def label(self, x):
        return self.model(x).argmax(1).tolist()
"""


def test_no_decorator_where_torch_need_not_be_there() -> None:
    assert len(findings(GUARDED, "MEM05", "MEM09")) == 1
    assert fixed(GUARDED, "MEM05", "MEM09") == GUARDED
    guarded = GUARDED[GUARDED.index("try") : GUARDED.index("\n\n\nclass")]
    always = GUARDED.replace(guarded, "import torch\nfrom torch import nn")
    assert "    @torch.no_grad()\n    def label" in fixed(always, "MEM05", "MEM09")
