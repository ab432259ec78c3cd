"""MEM05: once no graph is recorded, what cut it off is gone."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
import torch

from tests.rules.mem.recorded_evaluations import SETUP
from tests.support import fixed


@pytest.mark.parametrize("indent", ["", "    "], ids=["at the margin", "in a block"])
def test_a_line_that_only_cuts_off_goes_from_under_a_block(indent: str) -> None:
    before = f"{indent}for x, y in val_loader:\n{indent}    out = model(x)\n{indent}    out = out.detach()  \n\n"
    before += f"{indent}    seen.append(out)\n"
    after = f"{indent}with torch.no_grad():\n{indent}    for x, y in val_loader:\n{indent}        out = model(x)\n\n"
    after += f"{indent}        seen.append(out)\n"
    head = SETUP + "model.eval()\nseen = []\n" + ("if len(val_loader):\n" if indent else "")
    assert (
        fixed(head + before + "print(torch.cat(seen))\n", "MEM05", "MEM09") == head + after + "print(torch.cat(seen))\n"
    )


@pytest.mark.parametrize(
    ("read", "after"),
    [
        ("    loss = D(a.detach()).mean()\n", "    loss = D(a).mean()\n"),
        ("    shown = a.data\n    loss = D(shown).mean()\n", "    shown = a.data\n    loss = D(shown).mean()\n"),
        ("    shown = a.data[0]\n    loss = D(shown).mean()\n", "    shown = a[0]\n    loss = D(shown).mean()\n"),
        ("    a = a.detach()\n    loss = D(a).mean()\n", "    loss = D(a).mean()\n"),
        ("    a = D(a.detach())\n    loss = a.mean()\n", "    a = D(a)\n    loss = a.mean()\n"),
        ("    a += D.bias\n    loss = D(a.detach()).mean()\n", "    a += D.bias\n    loss = D(a.detach()).mean()\n"),
        ("    a[0] = D.bias\n    loss = D(a.detach()).sum()\n", "    a[0] = D.bias\n    loss = D(a.detach()).sum()\n"),
        ("    loss = D(a.detach()).mean()  # no graph\n", "    loss = D(a.detach()).mean()  # no graph\n"),
    ],
)
def test_what_no_graph_can_reach_any_more_is_not_detached(read: str, after: str) -> None:
    training = "G, D = nn.Linear(3, 4), nn.Linear(4, 4)\nfixed = torch.randn(2, 3)\nfor step in range(4):\n"
    training += "    opt.zero_grad()\n    D(G(torch.randn(2, 3))).mean().backward()\n"
    ends = "    loss.backward()\n    opt.step()\n"
    block = "    with torch.no_grad():\n        a = G(fixed)\n"
    code = f"{SETUP}{training}    a = G(fixed)\n{read}{ends}"
    assert fixed(code, "MEM05", "MEM09") == f"{SETUP}{training}{block}{after}{ends}"


def test_values_are_read_as_they_are_once_no_graph_is_recorded() -> None:
    """TRAIN10 speaks of the code that MEM05 leaves, and not of what was there before."""
    code = SETUP + "from torch.autograd import Variable\nG, D = nn.Linear(3, 4), nn.Linear(4, 4)\n"
    code += "for step in range(4):\n"
    code += "    opt.zero_grad()\n    D(G(torch.randn(2, 3))).mean().backward()\n    opt.step()\n"
    code += "    shown = G(Variable(torch.randn(2, 3)))\n    shown = shown.mul(0.5).add(0.5)\n"
    code += "    print(shown.data.cpu()[:2])\n"
    after = code.replace("from torch.autograd import Variable\n", "").replace("shown.data.cpu()", "shown.cpu()")
    before, inside = "    shown = G(Variable(torch.randn(2, 3)))\n", "        shown = G(torch.randn(2, 3))\n"
    assert fixed(code, "MEM05", "MEM09", "TRAIN10") == after.replace(before, "    with torch.no_grad():\n" + inside)
    assert "shown.detach().cpu()" in fixed(code, "TRAIN10")


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
    code = fixed(TWO, "MEM05", "MEM09")
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
    code = fixed(TWO.replace("first.data, second.data", "second.data, first.data"), "MEM05", "MEM09")
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


SHOWN = """\
def show(net, loader, kept):
    net.eval()
    for x, mask in loader:
        out = net(x)
        for i in range(len(x)):
            print(x[i].detach().numpy(), mask[i].detach().numpy(), out[i].detach().numpy())
            print(kept[i].detach().numpy())
"""


def test_batches_of_a_loader_are_not_detached_beside_results() -> None:
    after = fixed(SETUP + SHOWN, "MEM05", "MEM09")
    assert "print(x[i].numpy(), mask[i].numpy(), out[i].numpy())" in after
    assert "print(kept[i].detach().numpy())" in after


MEASURED = """
    import torch

    def measure(net, problem, loader):
        net.eval()
        rows = []
        for x, y in loader:
            out = net(x)
            rows.append(torch.norm(out - y, dim=1).detach().numpy())
            rows.append((out > y).sum(dim=1).detach().numpy())
            rows.append(OTHER.numpy())
        return rows
"""


@pytest.mark.parametrize(
    ("other", "is_cut"),
    [
        ("problem.gap(out).detach()", False),
        ("problem.gap(out).cpu().detach()", False),
        ("problem.gap.detach()", True),
        ("problem.gap(out)", True),
    ],
)
def test_results_are_detached_where_one_beside_them_may_have_to_be(other: str, is_cut: bool) -> None:
    code = dedent(MEASURED).lstrip().replace("OTHER", other)
    after = fixed(code, "MEM05", "MEM09")
    assert "@torch.no_grad()" in after
    body = code.replace("def measure", "@torch.no_grad()\ndef measure")
    assert after == (body.replace("dim=1).detach()", "dim=1)") if is_cut else body)


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        ("(out - y).detach()", "out - y"),
        ("(out - y).detach(), x", "out - y, x"),
        ("(out - y).detach()[0]", "(out - y)[0]"),
        ("x * (out - y).detach()", "x * (out - y)"),
    ],
)
def test_parentheses_that_only_the_cut_needed_go_with_it(kept: str, left: str) -> None:
    code = f"{SETUP}def measure(net, loader):\n    net.eval()\n    for x, y in loader:\n        out = net(x)\n"
    code += "        row = ROW\n        print(row)\n"
    before, after = code.replace("ROW", kept), code.replace("ROW", left)
    assert fixed(before, "MEM05", "MEM09") == after.replace("def measure", "@torch.no_grad()\ndef measure")


@pytest.mark.parametrize(
    ("returned", "left"),
    [
        ("return(out - y).detach()", "return out - y"),
        ("return ((out - y).detach() )", "return (out - y )"),
        ("return (net(y).data)", "return (net(y))"),
        ("return (out.data)", "return (out)"),
        ("return ((out - y)  # (one)\n        .detach())", "return ((out - y)  # (one)\n        .detach())"),
        ("return (net(y)  # (one)\n        .detach())", "return (net(y)  # (one)\n        .detach())"),
        ("return (\n        net(y).detach( )  # (one)\n    )", "return (\n        net(y)  # (one)\n    )"),
    ],
)
def test_parentheses_about_what_is_cut_stay(returned: str, left: str) -> None:
    code = f"{SETUP}def error(net, x, y):\n    net.eval()\n    out = net(x)\n    {returned}\n"
    after = code.replace(returned, left).replace("def error", "@torch.no_grad()\ndef error")
    assert fixed(code, "MEM05", "MEM09") == after


def test_parentheses_stay_with_a_detach_that_stays_beside_another() -> None:
    code = dedent(MEASURED).lstrip().replace("OTHER", "problem.gap(out).detach()")
    code = code.replace("    return rows", "    error = (out - y).detach()\n    rows.append(error)\n    return rows")
    body = code.replace("def measure", "@torch.no_grad()\ndef measure")
    assert fixed(code, "MEM05", "MEM09") == body


@pytest.mark.parametrize(
    ("rows", "is_cut"),
    [("[row.data.cpu() for row in out]", True), ("[row.data.cpu() for row in handed]", False)],
)
def test_rows_of_what_is_made_there_are_not_cut_off(rows: str, is_cut: bool) -> None:
    code = f"{SETUP}def images(net: nn.Module, x, handed):\n    net.eval()\n    out = net(x)\n    return len({rows})\n"
    after = fixed(code, "MEM05", "MEM09")
    assert "@torch.no_grad()" in after
    assert (".data" not in after) is is_cut


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("action = dist.sample() if sample else dist.mean", ""),
        ("action = dist.sample() if sample else other.weight", ".detach()"),
        ("action = dist.mean", ""),
        ("action = other.weight", ".detach()"),
        ("action = torch.log(dist[0])", ""),
        ("action = F.cross_entropy(dist, x)", ""),
    ],
)
def test_what_a_network_gives_on_both_ways_is_not_cut_off(line: str, left: str) -> None:
    code = f"{SETUP}def act(net: nn.Module, x, sample):\n    net.eval()\n    other = nn.Linear(2, 2)\n"
    code += f"    dist = net(x)\n    {line}\n    return action.detach().cpu().numpy()\n"
    after = fixed(code, "MEM05", "MEM09")
    assert f"return action{left}.cpu().numpy()" in after
    computed = line.removeprefix("action = ")
    at_once = code.replace(line + "\n", "pass\n").replace("action.detach()", f"{computed}.detach()")
    assert (".detach()" in fixed(at_once, "MEM05", "MEM09")) is ("other" in line)


@pytest.mark.parametrize(
    ("shown", "is_cut"),
    [
        ("F.softmax(out, dim=1).detach()", True),
        ("F.softmax(out, dim=1).data", True),
        ("nn.Softmax(dim=1)(out).detach()", True),
        ("scaled(out, 2).detach()", True),
        ("scaled(model.weight, 2).detach()", False),
        ("layout.scaled(out).detach()", False),
    ],
)
def test_what_a_function_makes_of_a_result_has_no_graph_either(shown: str, is_cut: bool) -> None:
    code = SETUP + "\ndef scaled(x, by):\n    return x * by\n\ndef evaluate(model, loader, layout):\n"
    code += "    model.eval()\n    for x, y in loader:\n        out, _ = model(x)\n"
    code += f"        shown = {shown}\n        print(shown.numpy())\n"
    after = fixed(code, "MEM05", "MEM09")
    assert "@torch.no_grad()" in after
    assert (f"shown = {shown.rpartition('.')[0]}\n" in after) is is_cut


@pytest.mark.parametrize(
    ("head", "read", "left"),
    [
        ("for x, y in val_loader", "y.cuda().detach()", "y.cuda()"),
        ("for x, y in val_loader", "y.to(x.device).data", "y.to(x.device)"),
        ("for x, y in enumerate(dev_iter)", "y.label.cpu().data.numpy()", "y.label.cpu().numpy()"),
        ("for x, y in enumerate(dev_iter)", "y.kept.data", "y.kept.data"),
        ("for x, y in enumerate(dev_iter)", 'y.data["k"].cpu()', 'y.data["k"].cpu()'),
        ("for x, y in handed", "y.cuda().detach()", "y.cuda().detach()"),
    ],
    ids=[
        "a part",
        "moved",
        "a field",
        "a field of what may be no tensor",
        "a field of that name",
        "of what is no data for all that is known",
    ],
)
def test_a_batch_is_not_cut_off_where_nothing_is_recorded(head: str, read: str, left: str) -> None:
    code = f"{SETUP}def judge(net: nn.Module, val_loader, dev_iter, handed, seen):\n    net.eval()\n    {head}:\n"
    code += f"        seen.append(net(x).argmax(1))\n        seen.append({read})\n    return len(seen)\n"
    after = fixed(code, "MEM05", "MEM09")
    assert "no_grad()" in after
    assert f"seen.append({left})" in after


def test_a_batch_that_is_moved_beside_another_is_not_cut_off() -> None:
    code = f"{SETUP}def judge(net: nn.Module, val_loader, seen):\n    net.eval()\n    for x, y in val_loader:\n"
    code += "        x, y = x.cuda(), y.cuda()\n        seen.append((net(x).argmax(1) == y.detach()).sum().item())\n"
    assert "== y).sum()" in fixed(code, "MEM05", "MEM09")


@pytest.mark.parametrize(("made", "is_cut"), [("net(x)", True), ("Result(net(x), weight)", False)])
def test_a_part_of_what_a_network_returns_is_not_cut_off(made: str, is_cut: bool) -> None:
    code = f"{SETUP}def judge(net: nn.Module, x, weight):\n    net.eval()\n    out = {made}\n"
    code += "    return out.logits.cpu().detach().numpy()\n"
    after = fixed(code, "MEM05", "MEM09")
    assert (".detach()" not in after) is is_cut


@pytest.mark.parametrize("cut", [".clone().detach()", ".detach().clone()"])
def test_a_copy_of_a_result_is_not_cut_off(cut: str) -> None:
    code = f"{SETUP}def judge(net: nn.Module, x):\n    net.eval()\n    return net(x){cut}.numpy()\n"
    assert "net(x).clone().numpy()" in fixed(code, "MEM05", "MEM09")


HANDED_BY_NAME = """
def scores(net: nn.Module, rows):
    net.eval()
    kept = []
    for batch in torch.utils.data.DataLoader(rows):
        batch = tuple(part.float() for part in batch)
        inputs = {"input": batch[0], "labels": batch[1]}
        LINE
        out = net(inputs["input"])
        kept.append((out.detach().numpy(), inputs["labels"].detach().numpy()))
    return kept
"""


@pytest.mark.parametrize(
    ("line", "is_cut"),
    [
        ("inputs.pop('more', None)", True),
        ("inputs['labels'] = net.weight", False),
        ("inputs.update(labels=net.weight)", False),
        ("inputs = {'input': batch[0], 'labels': net.weight}", False),
        ("inputs = {**inputs, 'labels': net.weight}", False),
    ],
)
def test_an_entry_of_what_a_batch_is_put_into_is_not_detached(line: str, is_cut: bool) -> None:
    code = SETUP + HANDED_BY_NAME.replace("LINE", line)
    after = fixed(code, "MEM05", "MEM09")
    assert "@torch.no_grad()" in after
    assert ('inputs["labels"].numpy()' in after) is is_cut
    rows = [(torch.ones(2, 8), torch.ones(2))]
    for program in (code, after):
        names: dict[str, Any] = {}
        exec(program, names)
        names["scores"](torch.nn.Linear(8, 8), rows)


ACTING = """
class Policy:
    def __init__(self):
        self.network = nn.Linear(8, 8)

    def act(self, state):
        scores = self.network(state)
        RETURN

def episodes(policy: Policy, states):
    for state in states:
        loss = policy.act(state).sum()
        loss.backward()
        chosen = policy.act(state).detach().numpy()
        print(chosen)
"""


@pytest.mark.parametrize(
    ("returned", "is_cut"),
    [
        ("return scores", True),
        ("return self.network(state)", True),
        ("return scores if len(state) else self.network.weight", False),
        ("return self.network.weight", False),
    ],
)
def test_what_a_method_in_sight_returns_of_a_network_is_not_detached(returned: str, is_cut: bool) -> None:
    after = fixed(SETUP + ACTING.replace("RETURN", returned), "MEM05", "MEM09")
    assert ("chosen = policy.act(state).numpy()" in after) is is_cut
