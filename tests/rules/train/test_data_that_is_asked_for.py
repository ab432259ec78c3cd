"""TRAIN10: `.data` of what is asked for it, of single elements, and of what is only compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import findings, fixed
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

ASKED = "import torch\n\ndef shown(obj):\n    return {test} and torch.is_tensor(obj.data)\n"


@pytest.mark.parametrize(
    ("test", "found"),
    [('hasattr(obj, "data")', 0), ('hasattr(obj, "shape")', 1), ('hasattr(obj.weight, "data")', 1)],
)
def test_what_may_have_no_data_is_no_tensor(test: str, found: int) -> None:
    code = ASKED.format(test=test).replace("return ", "obj.unsqueeze(0)\n    return ")
    assert len(findings(code, "TRAIN10")) == found


@pytest.mark.parametrize(
    ("kinds", "found"),
    [("Masked", 0), ("(Masked, Packed)", 0), ("(list, Masked)", 1), ("torch.Tensor", 1), ("kinds", 1)],
)
def test_what_may_be_of_another_class_is_no_tensor(kinds: str, found: int) -> None:
    code = (
        "import torch\nfrom masks import Masked, Packed\n\ndef joined(x):\n"
        f"    assert isinstance(x, {kinds})\n    return x.data.contiguous().unsqueeze(0)\n"
    )
    assert len(findings(code, "TRAIN10")) == found


@pytest.mark.parametrize(
    ("met", "found"), [("x = torch.stack(x)", 1), ("return x", 1), ("return x.data.contiguous()", 1), ("pass", 0)]
)
def test_what_is_of_another_class_is_done_with_before(met: str, found: int) -> None:
    code = (
        "import torch\nfrom masks import Masked\n\ndef joined(x):\n"
        f"    if isinstance(x, Masked):\n        {met}\n    return x.data.contiguous().unsqueeze(0)\n"
    )
    assert len(findings(code, "TRAIN10")) == found


@pytest.mark.parametrize(
    ("element", "fixes"),
    [
        ("rows[0, 1, 2].data[0]", 0),
        ("rows[0, 1:, 2].data[0]", 1),
        ("rows[0].data[0]", 1),
    ],
)
def test_one_element_of_many_dimensions_has_no_first_one(element: str, fixes: int) -> None:
    head = "import torch\nfrom torch import nn\n\ndef f(x):\n    rows = nn.Conv2d(1, 1, 1)(x)\n"
    code = f"{head}    return {element}.cpu()\n"
    assert len(findings(code, "TRAIN10")) == 1
    assert (fixed(code, "TRAIN10", unsafe=True) != code) == bool(fixes)


def test_what_is_compared_as_a_whole_needs_no_detach() -> None:
    code = "import torch\nfrom torch import nn\n\ndef f(a: nn.Linear, b: nn.Linear):\n    return {}\n"
    before = code.format("torch.equal(a.weight.data, b.weight.data)")
    after = code.format("torch.equal(a.weight, b.weight)")
    assert fixed(before, "TRAIN10", unsafe=True) == after
    one, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    results = []
    for text in (before, after):
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        results.append([namespace["f"](one, one), namespace["f"](one, other)])
    assert results[0] == results[1] == [True, False]


def test_no_grad_leaves_such_an_element_as_it_is() -> None:
    code = """\
import torch
from torch import nn

def show(net: nn.Module, loader, rows):
    net.eval()
    for x in loader:
        y = net(x.cuda())
        print(y[0, rows, 1].data[0], y[0].data)
"""
    after = fixed(code, "MEM05", unsafe=True)
    assert "torch.no_grad()" in after
    assert "print(y[0, rows, 1].data[0], y[0])" in after


@pytest.mark.parametrize(
    ("read", "number"),
    [
        ("loss.view(-1).data.cpu().numpy()[0]", "loss.item()"),
        ("loss.reshape(-1).data[0]", "loss.item()"),
        ("loss.flatten().data.cpu().numpy()[0]", "loss.item()"),
        ("out.view(-1).data.cpu().numpy()[0]", "out.view(-1).detach().cpu().numpy()[0]"),
    ],
)
def test_the_only_value_of_a_loss_in_a_row(read: str, number: str) -> None:
    code = "import torch\ndef fit(net: torch.nn.Module, x, optimizer):\n    for i in range(9):\n        out = net(x)\n"
    code += "        loss = (out**2).sum()\n        loss.backward()\n        optimizer.step()\n"
    code += f"        print('loss %.3g' % {read})\n"
    assert f"% {number})" in fixed(code, "TRAIN10", unsafe=True)


@pytest.mark.parametrize(("trains", "read"), [(True, "p.grad"), (False, "p.grad.detach()")])
def test_a_gradient_is_plain_where_another_file_runs_the_backward_pass(tmp_path: Path, trains: bool, read: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "push.py").write_text(
        "import torch\n\ndef push(client, net: torch.nn.Module):\n    for p in net.parameters():\n"
        "        client.push(p.grad.data)\n"
    )
    step = "loss.backward()" if trains else "loss.show()"
    (tmp_path / "train.py").write_text(
        f"from push import push\n\ndef step(loss, net, client):\n    {step}\n    push(client, net)\n"
    )
    source = Source.read(tmp_path / "push.py")
    [found] = [each for each in lint(source, project=Project()) if each.code == "TRAIN10"]
    assert found.fix is not None
    assert f"client.push({read})" in source.apply(found.fix.edits).text


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ("edges.data[field].sum(-1, keepdim=True)", 0),
        ("edges.data['score'].cpu()", 0),
        ("edges.data[0].cpu()", 1),
        ("edges.data[:, field].cpu()", 1),
        ("edges.data[field].cpu() + edges.unsqueeze(0)", 1),
    ],
)
def test_an_entry_says_nothing_of_what_holds_it(read: str, found: int) -> None:
    code = f"import torch\n\ndef score(field):\n    def of(edges):\n        return {read}\n    return of\n"
    assert len(findings(code, "TRAIN10")) == found


@pytest.mark.parametrize(
    ("read", "left"),
    [
        ("x[(x > 1).data]", "x[x > 1]"),
        ("torch.sum((x > 1).data)", "torch.sum(x > 1)"),
        ("(x > 1).data.sum()", "(x > 1).sum()"),
        ("~(x > 1).data", "~(x > 1)"),
    ],
)
def test_parentheses_that_only_data_needed_go_with_it(read: str, left: str) -> None:
    code = "import torch\n\ndef kept(x):\n    x = torch.abs(x)\n    return {}\n"
    assert fixed(code.format(read), "TRAIN10", unsafe=True) == code.format(left)


MASKS = """\
import torch
from torch import nn

class Pruner:
    def __init__(self, layer: nn.Linear, rows):
        self.layer, self.rows = layer, rows

    def mask(self):
        metric = torch.abs(self.layer.weight.data) * self.rows
        return torch.sort(metric, dim=-1)[1]

@torch.no_grad()
def prune(layer, rows):
    return Pruner(nn.Linear(3, 3), rows).mask()
"""


def test_what_an_object_keeps_is_cut_off_in_a_method_that_only_callers_switch_autograd_off_for() -> None:
    assert "torch.abs(self.layer.weight.detach())" in fixed(MASKS, "TRAIN10", unsafe=True)
    inside = MASKS.replace("    def mask", "    @torch.no_grad()\n    def mask")
    assert "torch.abs(self.layer.weight)" in fixed(inside, "TRAIN10", unsafe=True)


EVALUATION = """\
import torch

@torch.no_grad()
def evaluate(data, net, world_size):
    out = net(data.x)
    loss = torch.nn.functional.cross_entropy(out, data.y)
{body}
"""


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("    return out.data.cpu(), data.y.data.cpu()", "    return out.detach().cpu(), data.y.detach().cpu()"),
        ("    return out.data.cpu(), out.data.sum()", "    return out.cpu(), out.sum()"),
        (
            "    if world_size > 1:\n        a = reduced(loss.data)\n    else:\n        a = loss.data\n    return a",
            "    if world_size > 1:\n        a = reduced(loss)\n    else:\n        a = loss\n    return a",
        ),
        ("    shown = loss.data\n    return shown", "    shown = loss.data\n    return shown"),
        (
            "    return (\n        out[0]\n        .data.cpu()\n        .numpy()\n    )",
            "    return (\n        out[0]\n        .cpu()\n        .numpy()\n    )",
        ),
    ],
)
def test_what_an_evaluation_reads_is_written_alike_and_keeps_its_lines(body: str, after: str) -> None:
    assert fixed(EVALUATION.format(body=body), "TRAIN10", unsafe=True) == EVALUATION.format(body=after)


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ("rot if isinstance(rot, torch.Tensor) else rot.data", 0),
        ("rot.data if not torch.is_tensor(rot) else rot", 0),
        ("rot if isinstance(rot, list) else rot.data", 1),
        ("rot if isinstance(trans, torch.Tensor) else rot.data", 1),
    ],
)
def test_what_is_told_from_tensors_is_none(read: str, found: int) -> None:
    code = f"import torch\n\ndef joined(rot, trans):\n    rot.unsqueeze(0)\n    rows = {read}\n    return rows, trans\n"
    assert len(findings(code, "TRAIN10")) == found
    block = code.replace("rows = rot if", "rows = rot\n    if not").replace(
        " else rot.data", ":\n        rows = rot.data"
    )
    assert len(findings(block, "TRAIN10")) == found


@pytest.mark.parametrize(("computed", "left"), [("nll(x).mean().cpu()", ""), ("nll(x).cpu()", ".detach()")])
def test_what_is_computed_anew_without_a_graph_has_none(computed: str, left: str) -> None:
    body = "def shown(x):\n    with elsewhere.Eval(net), torch.no_grad():\n        return net.{read}.numpy()\n"
    code = "import elsewhere\nimport torch\n\nnet = elsewhere.Net()\n\n" + body
    after = code.replace("{read}", computed + left)
    assert fixed(code.replace("{read}", f"{computed}.data"), "TRAIN10", unsafe=True) == after


@pytest.mark.parametrize(("header", "left"), [("@torch.no_grad()\n", ""), ("", ".detach()")])
def test_numbers_that_are_written_elsewhere_without_a_graph(header: str, left: str) -> None:
    body = "def restore(net, kept):\n    for row, old in zip(net.buffers(), kept):\n        old = old.unsqueeze(0)\n"
    code = f"import torch\n\n{header}{body}        row.copy_(old{{read}})\n"
    assert fixed(code.format(read=".data"), "TRAIN10", unsafe=True) == code.format(read=left)


ASKED_TWICE = """
import torch
from masks import Masked, Packed

def joined(x):
    if {first}:
        {met}
    if isinstance(x, Packed):
        return x
    return x.data.contiguous().unsqueeze(0)
"""


@pytest.mark.parametrize(
    ("first", "met", "found"),
    [
        ("isinstance(x, Masked)", "return x", 1),
        ("isinstance(x, Masked)", "print(x)", 0),
        ("isinstance(x, Masked) or isinstance(x, list)", "return x", 1),
        ("isinstance(x, Masked) and x.rows", "return x", 0),
    ],
)
def test_what_may_be_of_either_of_two_classes(first: str, met: str, found: int) -> None:
    assert len(findings(ASKED_TWICE.format(first=first, met=met), "TRAIN10")) == found


@pytest.mark.parametrize("other", ["state.current_node", "state.shape"])
def test_what_another_method_asks_for_members_of_its_own_is_no_tensor(other: str) -> None:
    code = "from torch import nn\n\nclass Actor(nn.Module):\n    def reset(self, state):\n"
    code += "        self.size = state.data.size(0)\n\n"
    code += f"    def act(self, state):\n        return {other}\n"
    assert len(findings(code, "TRAIN10")) == (other == "state.shape")
