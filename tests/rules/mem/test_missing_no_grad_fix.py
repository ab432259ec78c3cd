"""MEM05: what its fix writes, and that the fixed program computes the same."""

from __future__ import annotations

from textwrap import dedent

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


REWRITES = {
    "a statement right below one that is without gradients": (
        """\
for x, y in loader:
    with torch.no_grad():
        goal = model(x)

    rest = (goal - model(2 * x)).detach()
    loss = F.mse_loss(model(x), goal + rest)
    opt.zero_grad()
    loss.backward()
    opt.step()
result = loss.detach()
""",
        """\
for x, y in loader:
    with torch.no_grad():
        goal = model(x)

        rest = goal - model(2 * x)
    loss = F.mse_loss(model(x), goal + rest)
    opt.zero_grad()
    loss.backward()
    opt.step()
result = loss.detach()
""",
    ),
    "a statement below a comment of its own": (
        """\
for x, y in loader:
    with torch.no_grad():
        goal = model(x)
    # what is left
    rest = 3 * (goal - model(2 * x)).detach()
    loss = F.mse_loss(model(x), goal + rest)
    opt.zero_grad()
    loss.backward()
    opt.step()
result = loss.detach()
""",
        """\
for x, y in loader:
    with torch.no_grad():
        goal = model(x)
    # what is left
    with torch.no_grad():
        rest = 3 * (goal - model(2 * x))
    loss = F.mse_loss(model(x), goal + rest)
    opt.zero_grad()
    loss.backward()
    opt.step()
result = loss.detach()
""",
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
    assert len(findings(SETUP + code, "MEM05")) == 1
    assert fixed(SETUP + code, "MEM05") == SETUP + code


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    assert fixed(SETUP + before, "MEM05") == SETUP + after


def test_a_long_loop_is_not_indented_as_a_whole() -> None:
    filler = "".join(f"    shown = {number}\n" for number in range(40))
    before = "    hits = (model(x).argmax(1) == y).sum().item()\n"
    after = "    with torch.no_grad():\n        hits = (model(x).argmax(1) == y).sum().item()\n"
    head = SETUP + "model.eval()\nfor x, y in val_loader:\n" + filler
    assert fixed(head + before + "    print(hits, shown)\n", "MEM05") == head + after + "    print(hits, shown)\n"


@pytest.mark.parametrize("indent", ["", "    "], ids=["at the margin", "in a block"])
def test_a_line_that_only_cuts_off_goes_from_under_a_block(indent: str) -> None:
    before = f"{indent}for x, y in val_loader:\n{indent}    out = model(x)\n{indent}    out = out.detach()  \n\n"
    before += f"{indent}    seen.append(out)\n"
    after = f"{indent}with torch.no_grad():\n{indent}    for x, y in val_loader:\n{indent}        out = model(x)\n\n"
    after += f"{indent}        seen.append(out)\n"
    head = SETUP + "model.eval()\nseen = []\n" + ("if len(val_loader):\n" if indent else "")
    assert fixed(head + before + "print(torch.cat(seen))\n", "MEM05") == head + after + "print(torch.cat(seen))\n"


def test_neighbouring_statements_go_into_one_block() -> None:
    training = "G, H, D = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(4, 1)\nfixed = torch.randn(2, 3)\n"
    training += "for step in range(4):\n    opt.zero_grad()\n    D(G(torch.randn(2, 3)) + H(fixed)).mean().backward()\n"
    training += "    opt.step()\n    if step % 2 == 0:\n"
    first, second = "a = G(fixed).detach().numpy()\n", "b = H(fixed).detach().numpy()\n"
    ends = "        print(a, b)\n"
    block = f"        with torch.no_grad():\n            {first}            {second}".replace(".detach()", "")
    assert fixed(f"{SETUP}{training}        {first}        {second}{ends}", "MEM05") == SETUP + training + block + ends
    apart = f"        {first}        print(a)\n        {second}        print(b)\n"
    assert fixed(SETUP + training + apart, "MEM05").count("with torch.no_grad():") == 2


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
    assert fixed(SETUP + training + branches + ends, "MEM05") == after
    apart = branches.replace(first, first + "        print(step)\n")
    assert fixed(SETUP + training + apart + ends, "MEM05").count("with torch.no_grad():") == 2


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
    assert len(findings(code, "MEM05")) == 1
    assert ("with torch.no_grad():" in fixed(code, "MEM05")) is is_fixed


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
    assert findings(code, "MEM05")
    assert "no_grad" not in fixed(code, "MEM05")


@pytest.mark.parametrize(("other", "is_fixed"), [("pool, a = 1, G(fixed)", False), ("b = G(fixed)", True)])
def test_a_branch_that_makes_the_same_and_would_keep_its_graph(other: str, is_fixed: bool) -> None:
    code = (
        SETUP + "G, D = nn.Linear(3, 4), nn.Linear(4, 1)\nfixed, seen = torch.randn(2, 3), []\nfor step in range(4):\n"
    )
    code += "    opt.zero_grad()\n    D(G(torch.randn(2, 3))).mean().backward()\n    opt.step()\n"
    code += f"    if step % 2:\n        a = G(fixed).detach()\n    else:\n        {other}\n        seen.append(a)\n"
    assert ("with torch.no_grad():" in fixed(code, "MEM05")) is is_fixed


@pytest.mark.parametrize(
    ("read", "after"),
    [
        ("    loss = D(a.detach()).mean()\n", "    loss = D(a).mean()\n"),
        ("    shown = a.data\n    loss = D(shown).mean()\n", "    shown = a\n    loss = D(shown).mean()\n"),
        ("    a = a.detach()\n    loss = D(a).mean()\n", "    loss = D(a).mean()\n"),
        ("    a = D(a.detach())\n    loss = a.mean()\n", "    a = D(a)\n    loss = a.mean()\n"),
        ("    a += D.bias\n    loss = D(a.detach()).mean()\n", "    a += D.bias\n    loss = D(a.detach()).mean()\n"),
        ("    loss = D(a.detach()).mean()  # no graph\n", "    loss = D(a.detach()).mean()  # no graph\n"),
    ],
)
def test_what_no_graph_can_reach_any_more_is_not_detached(read: str, after: str) -> None:
    training = "G, D = nn.Linear(3, 4), nn.Linear(4, 4)\nfixed = torch.randn(2, 3)\nfor step in range(4):\n"
    training += "    opt.zero_grad()\n    D(G(torch.randn(2, 3))).mean().backward()\n"
    ends = "    loss.backward()\n    opt.step()\n"
    block = "    with torch.no_grad():\n        a = G(fixed)\n"
    code = f"{SETUP}{training}    a = G(fixed)\n{read}{ends}"
    assert fixed(code, "MEM05") == f"{SETUP}{training}{block}{after}{ends}"


def test_values_are_read_as_they_are_once_no_graph_is_recorded() -> None:
    """TRAIN10 speaks of the code that MEM05 leaves, and not of what was there before."""
    code = SETUP + "from torch.autograd import Variable\nG, D = nn.Linear(3, 4), nn.Linear(4, 4)\n"
    code += "for step in range(4):\n"
    code += "    opt.zero_grad()\n    D(G(torch.randn(2, 3))).mean().backward()\n    opt.step()\n"
    code += "    shown = G(Variable(torch.randn(2, 3)))\n    shown = shown.mul(0.5).add(0.5)\n"
    code += "    print(shown.data.cpu()[:2])\n"
    after = code.replace("from torch.autograd import Variable\n", "").replace("shown.data.cpu()", "shown.cpu()")
    before, inside = "    shown = G(Variable(torch.randn(2, 3)))\n", "        shown = G(torch.randn(2, 3))\n"
    assert fixed(code, "MEM05", "TRAIN10") == after.replace(before, "    with torch.no_grad():\n" + inside)
    assert "shown.detach().cpu()" in fixed(code, "TRAIN10")


def test_a_file_of_another_library_is_left_alone() -> None:
    code = "import paddle\n\ndef test(loader, net):  # as with Pytorch\n    net.eval()\n"
    code += "    return [net(x).sum().item() for x in loader]\n"
    assert findings(code, "MEM05") == []
    assert len(findings(code.replace("import paddle", "import paddle\nimport torch"), "MEM05")) == 1


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
    assert len(findings(code, "MEM05")) == 1
    assert fixed(code, "MEM05") == code


def test_is_no_safe_fix() -> None:
    code = SETUP + REWRITES["a whole function"][0]
    assert fixed(code, "MEM05", unsafe=False) == code


@pytest.mark.parametrize("before", [before for before, _ in REWRITES.values()], ids=REWRITES.keys())
def test_same_result(before: str) -> None:
    results = []
    for code in (SETUP + before, fixed(SETUP + before, "MEM05")):
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
    assert findings(fixed(SETUP + variant, "MEM05"), "MEM05") == []


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
    assert f"@{spelling}()\ndef evaluate" in fixed(code, "MEM05")


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
    assert [finding.fix for finding in findings(code, "MEM05")] == [None]
    for other in ("found = codes.mean().item()", "with torch.no_grad():\n                    " + body):
        assert "with torch.no_grad():\n                codes =" in fixed(MEASURED.format(other), "MEM05")


TWO = """
    import torch

    def rank(net, pairs):
        net.eval()
        hits = 0
        for x, y in pairs:
            first = net(x)
            second = net(y)
            first, second = first.data, second.data
            hits += (first > second).sum().item()
        return hits
"""


def test_names_that_would_only_get_what_they_have_are_not_assigned() -> None:
    code = fixed(TWO, "MEM05")
    assert "@torch.no_grad()" in code
    assert "first, second =" not in code
    counts = []
    for program in (dedent(TWO), code):
        torch.manual_seed(0)
        names: dict[str, object] = {}
        exec(program, names)
        net = torch.nn.Linear(3, 4)
        counts.append(names["rank"](net, [(torch.ones(2, 3), torch.zeros(2, 3))]))  # type: ignore[operator]
    assert counts[0] == counts[1]


def test_names_of_which_one_gets_another_value_are_assigned() -> None:
    code = fixed(TWO.replace("first.data, second.data", "second.data, first.data"), "MEM05")
    assert "first, second = second, first" in code


@pytest.mark.parametrize(("codes", "read"), [(("MEM05",), "loss.data[0]"), (("MEM05", "TRAIN10"), "loss.item()")])
def test_a_number_that_is_read_out_of_data_does_not_become_an_element(codes: tuple[str, ...], read: str) -> None:
    code = """
        import torch
        import torch.nn.functional as F

        def evaluate(net, test_loader):
            net.eval()
            total = 0
            for x, y in test_loader:
                loss = F.mse_loss(net(x), y).mean()
                total += loss.data[0]
            return total
    """
    after = fixed(code, *codes)
    assert "no_grad()" in after
    assert f"total += {read}" in after


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
    assert len(findings(GUARDED, "MEM05")) == 1
    assert fixed(GUARDED, "MEM05") == GUARDED
    guarded = GUARDED[GUARDED.index("try") : GUARDED.index("\n\n\nclass")]
    always = GUARDED.replace(guarded, "import torch\nfrom torch import nn")
    assert "    @torch.no_grad()\n    def label" in fixed(always, "MEM05")


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
    assert len(findings(code, "MEM05")) == 1
    assert ("set_grad_enabled" in fixed(code, "MEM05")) is is_fixed
