"""TRAIN10: what shows that the owner of `.data` is a tensor."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.support import findings, fixed

USED = """\
import torch
from torch import nn

class Memory(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.rows = torch.zeros(count, 4)

    @staticmethod
    def scale(batch, low):
        mean = {first}
        return torch.div(batch, mean)

    def keep(self, x, shown, info):
        {second}
"""


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("batch.data.new(1)", "pass", 1),  # it is divided, so the batch is one tensor
        ("low.data.new(1)", "pass", 1),
        ("1.0", "self.rows[2:4].copy_(x.data[:2])", 1),
        ("1.0", "self.rows.eq(info.data).sum()", 1),
        ("1.0", "shown.eq(info.data).sum()", 0),  # of what may be an array, or a column
        ("1.0", "self.rows.to(info.data).sum()", 0),  # which may be a device
        ("1.0", "self.keep(x.data[:2])", 0),
        ("1.0", "return x.data.size(0)", 1),
        ("1.0", "return info.data.size(0)", 1),
        ("1.0", "return info.data.size", 0),
        ("1.0", "return info.data.size(0), info.boxes", 0),
        ("1.0", "return info.frames[0].data.size(0), info.frames[0].boxes", 0),
        ("1.0", "return info.frames[0].data.size(0), info.frames[0].shape", 1),
        ("1.0", "shown(x[:, 0].data)", 1),
        ("1.0", "shown(x[0].data, x['rows', 0].data)", 0),
        ("1.0", "self.keep(torch.sum(info.data == 1), [info.data[i] for i in range(3)])", 2),
        ("1.0", "self.keep(sum(info.data == 1), [info.data[i] for i in range(3)])", 0),
        ("1.0", "return torch.sqrt(1.0 - info.data * 2)", 1),
        ("1.0", "self.rows[shown.data.cpu() - 1 == 0] = 1", 1),  # the index says where, and is only read
        ("1.0", "x.data[0] = x.data[1]", 0),
    ],
)
def test_what_is_done_with_data_shows_a_tensor(first: str, second: str, count: int) -> None:
    assert len(findings(USED.format(first=first, second=second), "TRAIN10")) == count


FORMULA = """\
import torch

class Scaled(torch.autograd.Function):
    @staticmethod
    def backward(ctx, given):
        x, = ctx.{}
        height = x.data.shape[2]
        return given * height
"""


@pytest.mark.parametrize(("kept", "count"), [("saved_tensors", 1), ("sizes", 0)])
def test_what_a_gradient_formula_has_saved_is_tensors(kept: str, count: int) -> None:
    assert len(findings(FORMULA.format(kept), "TRAIN10")) == count


def _results(code: str) -> Any:
    names: dict[str, Any] = {}
    torch.manual_seed(0)
    exec(code, names)
    made = names["run"](torch.nn.Linear(3, 2), torch.ones(2, 3))
    return [(each.tolist(), each.requires_grad) for each in made]


RUNS = """\
import torch

def run(net, x):
    weight = net.weight
{body}
"""


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("    return [(weight != 0).float().data.cpu()]", "    return [(weight != 0).float().cpu()]"),
        ("    return [(torch.rand(3) < 0.5).data]", "    return [(torch.rand(3) < 0.5)]"),
        ("    return [(weight * 2).float().data.cpu()]", "    return [(weight * 2).float().detach().cpu()]"),
        (
            "    return [weight * weight.data[0][0].numel(), weight * weight.data.view(-1).shape[0]]",
            "    return [weight * weight[0][0].numel(), weight * weight.view(-1).shape[0]]",
        ),
        (
            "    ask = lambda p: p.requires_grad\n    with torch.no_grad():\n        out = net(x)\n"
            "    list(filter(lambda p: p.requires_grad, net.parameters()))\n    return [out.data.cpu()]",
            "    ask = lambda p: p.requires_grad\n    with torch.no_grad():\n        out = net(x)\n"
            "    list(filter(lambda p: p.requires_grad, net.parameters()))\n    return [out.detach().cpu()]",
        ),
        (
            "    with torch.no_grad():\n        out = net(x)\n"
            "    list(filter(lambda p: p.requires_grad, net.parameters()))\n    return [out.data.cpu()]",
            "    with torch.no_grad():\n        out = net(x)\n"
            "    list(filter(lambda p: p.requires_grad, net.parameters()))\n    return [out.cpu()]",
        ),
        (
            "    with torch.no_grad():\n        out = net(x)\n        return torch.max(out.data, 1)",
            "    with torch.no_grad():\n        out = net(x)\n        return torch.max(out, 1)",
        ),
        (
            "    with torch.no_grad():\n        out = net(x)\n    y = out.mul(0.5)\n    z = [y.data]\n    return z",
            "    with torch.no_grad():\n        out = net(x)\n    y = out.mul(0.5)\n    z = [y]\n    return z",
        ),
        (
            "    with torch.no_grad():\n        out = getattr(net, 'forward')(x)\n    return [out.data.cpu()]",
            "    with torch.no_grad():\n        out = getattr(net, 'forward')(x)\n    return [out.cpu()]",
        ),
        (
            "    with torch.no_grad():\n        out = net(x)\n        out, rest = out[:, :1], x\n"
            "    return [out.data.cpu()]",
            "    with torch.no_grad():\n        out = net(x)\n        out, rest = out[:, :1], x\n"
            "    return [out.cpu()]",
        ),
        (
            "    out = net(x)\n    with torch.no_grad():\n        kept = out\n        kept = kept[:1]\n"
            "    return [kept.data.cpu()]",
            "    out = net(x)\n    with torch.no_grad():\n        kept = out\n        kept = kept[:1]\n"
            "    return [kept.detach().cpu()]",
        ),
        (
            "    return [net(x)[:, :1] == x.data, torch.zeros(2, 4).scatter_(1, x.data.long(), 1)]",
            "    return [net(x)[:, :1] == x, torch.zeros(2, 4).scatter_(1, x.long(), 1)]",
        ),
        (
            "    out = net(x)\n    with torch.no_grad():\n        return [out.data.sum(), torch.t(x)]",
            "    out = net(x)\n    with torch.no_grad():\n        return [out.sum(), torch.t(x)]",
        ),
        (
            "    out = net(x)\n    with torch.no_grad():\n        return [out.data.cpu() - out.data.cpu()]",
            "    out = net(x)\n    with torch.no_grad():\n        return [out.cpu() - out.cpu()]",
        ),
        (
            "    return [torch.tensor([i for i in range(2) if weight.data[i, 0] != 0]), torch.nonzero(weight.data)]",
            "    return [torch.tensor([i for i in range(2) if weight[i, 0] != 0]), torch.nonzero(weight)]",
        ),
        (
            "    out = net(x)\n    with torch.no_grad():\n        return [torch.t(out.data)]",
            "    out = net(x)\n    with torch.no_grad():\n        return [torch.t(out.detach())]",
        ),
        (
            "    kept = []\n    with torch.no_grad():\n        kept.append(net(x))\n    kept = torch.cat(kept)\n"
            "    return [torch.max(kept.data, 1)[1]]",
            "    kept = []\n    with torch.no_grad():\n        kept.append(net(x))\n    kept = torch.cat(kept)\n"
            "    return [torch.max(kept, 1)[1]]",
        ),
        (
            "    kept = []\n    kept.append(net(x))\n    kept = torch.cat(kept)\n"
            "    return [torch.max(kept.data, 1)[1]]",
            "    kept = []\n    kept.append(net(x))\n    kept = torch.cat(kept)\n"
            "    return [torch.max(kept.detach(), 1)[1]]",
        ),
        (
            "    a = torch.sum(x) > 0\n    b = torch.sum(x) < 2\n    a, b = a.data, b.data\n    return [a, b]",
            "    a = torch.sum(x) > 0\n    b = torch.sum(x) < 2\n    return [a, b]",
        ),
        (
            "    a = torch.sum(x) > 0\n    b = torch.exp(net(x))\n    a, b = a.data, b.data\n    return [a, b]",
            "    a = torch.sum(x) > 0\n    b = torch.exp(net(x))\n    a, b = a, b.detach()\n    return [a, b]",
        ),
    ],
)
def test_where_no_gradient_can_be_the_tensor_stands_bare(body: str, after: str) -> None:
    code = RUNS.format(body=body)
    result = fixed(code, "TRAIN10")
    assert result == RUNS.format(body=after)
    assert _results(result) == _results(code)


@pytest.mark.parametrize(
    ("beside", "is_fixed"),
    [
        ("    kept.append(net.weight.data)\n    kept.append(x.y.data)", False),
        ("    kept.append(net.weight.data)\n    print()\n    kept.append(x.y.data)", False),
        ("    a = net.weight.data\n    b = net.bias.data\n    c = x.y.data if x else 0\n    kept += [a, b, c]", False),
        ("    a = net.weight.data\n    b = net.bias.data\n    kept += [a, b]", True),
        ("    print(len(x.data))\n    a = net.weight.data\n    kept.append(a)", False),
        ("    print(x.data.size)\n    a = net.weight.data\n    kept.append(a)", True),
    ],
)
def test_statements_in_a_row_keep_to_one_idiom(beside: str, is_fixed: bool) -> None:
    code = RUNS.format(body=f"    kept = []\n{beside}\n    return kept")
    assert ("net.weight.detach()" in fixed(code, "TRAIN10")) is is_fixed
    assert (".data" in fixed(code, "TRAIN10")) is (not is_fixed or "x." in beside)


WRAPPED = """\
import torch
from torch.autograd import Variable

def run(net, x):
    scaled = x * Variable(torch.ones(3)).cpu() + {open}
        torch.FloatTensor([{numbers}]).view(1, 3){close}).cpu()
    return [scaled]
"""


@pytest.mark.parametrize(
    ("numbers", "close", "kept"),
    [
        ("0.00000001, 0.00000002, 0.00000003", "", True),
        ("1, 2, 3", "", False),
        ("0.00000001, 0.00000002, 0.00000003", ",", False),  # with the comma it would be a tuple
    ],
)
def test_a_wrapped_line_is_joined_only_where_it_fits(numbers: str, close: str, kept: bool) -> None:
    code = WRAPPED.format(open="Variable(", numbers=numbers, close=close)
    after = fixed(code, "TRAIN10")
    assert "Variable(" not in after
    assert (after.count("\n") == code.count("\n")) is kept
    assert ("+ (\n" in after) is kept
    assert _results(after) == _results(code)


@pytest.mark.parametrize(("sign", "count"), [("+=", 1), ("=", 0)], ids=["a sum", "what it becomes"])
def test_a_sum_that_is_emptied_is_no_part_of_what_is_added(sign: str, count: int) -> None:
    code = f"""
    import torch

    def run(model, batches, optimizer):
        window = torch.zeros(())
        for step, x in enumerate(batches):
            optimizer.zero_grad()
            loss = model(x).mean()
            loss.backward()
            window {sign} loss.data
            optimizer.step()
            if step % 10 == 9:
                print(window.item())
                window.zero_()
    """
    assert len(findings(code, "TRAIN10")) == count


SHOWN = "import torch\nloss = torch.nn.functional.mse_loss(torch.ones(3, requires_grad=True), torch.zeros(3))\nseen = "


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("'{:.4f} {}'.format(loss.data, 1)", "'{:.4f} {}'.format(loss.item(), 1)"),
        ("'{} {:.4f}'.format(1, 1-loss.data)", "'{} {:.4f}'.format(1, 1-loss.item())"),
        ("'{} {:.4f}'.format(1, -loss.data)", "'{} {:.4f}'.format(1, -loss.item())"),
        ("'%.4f' % loss.data", "'%.4f' % loss.item()"),
        ("'%d%% %.2e' % (3, loss.data / 2)", "'%d%% %.2e' % (3, loss.item() / 2)"),
        ("f'{loss.data:.3f}'", "f'{loss.item():.3f}'"),
        ("f'{loss.data}'", "f'{loss.detach()}'"),
        ("'%s' % loss.data", "'%s' % loss.detach()"),
        ("'{} {:.4f}'.format(loss.data, 1)", "'{} {:.4f}'.format(loss.detach(), 1)"),
        ("'{a:.4f}'.format(a=loss.data)", "'{a:.4f}'.format(a=loss.detach())"),
    ],
)
def test_what_a_string_shows_as_a_number_is_read_as_one(before: str, after: str) -> None:
    assert fixed(SHOWN + before + "\n", "TRAIN10") == SHOWN + after + "\n"
    shown = []
    for text in (before, after):
        names: dict[str, object] = {}
        exec(SHOWN + text, names)
        shown.append(names["seen"])
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("    y = net(target)\n    return x[0, y.data[0][1]]\n", "    y = net(target)\n    return x[0, y[0][1]]\n"),
        (
            "    best, at = x.exp().data.topk(2)\n    return best.data.view(-1)\n",
            "    best, at = x.exp().detach().topk(2)\n    return best.view(-1)\n",
        ),
        (
            "    best, at = x.exp().topk(2)\n    return best.data.view(-1)\n",
            "    best, at = x.exp().topk(2)\n    return best.detach().view(-1)\n",
        ),
    ],
)
def test_what_has_no_graph_is_not_detached(body: str, after: str) -> None:
    head = "import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\n\ndef pick(x, target):\n    x = net(x)\n"
    assert fixed(head + body, "TRAIN10") == head + after


HANGING = """\
import torch
from torch.autograd import Variable


def run(net, x):
    turned_around = Variable(
        torch.cat([x, -x], dim=1).permute(
            1, 0
        ),
        requires_grad=False,
    )
    return [turned_around]
"""


def test_the_further_lines_of_what_was_wrapped_keep_to_its_new_first_line() -> None:
    after = fixed(HANGING, "TRAIN10")
    assert "    turned_around = torch.cat([x, -x], dim=1).permute(\n        1, 0\n    )\n    return" in after
    assert _results(after) == _results(HANGING)


ASKED = """\
import torch
from torch import nn


def positives(label, weights):
    label = label.view(-1)
    return {}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("label.data.eq(1).nonzero()", "label.eq(1).nonzero()"),
        ("(label.data != 0) & (label.data != 3)", "(label != 0) & (label != 3)"),
        ("label.data.max(0)[1]", "label.max(0)[1]"),
        ("label.data.max(0)[0]", "label.detach().max(0)[0]"),
        ("label.data.view(2, -1).argmax(1)", "label.view(2, -1).argmax(1)"),
        ("weights[label.data.long()]", "weights[label.long()]"),
        ("label.data.cpu().numpy() > 0", "label.detach().cpu().numpy() > 0"),
        ("label.data.float().numpy() > 0", "label.detach().float().numpy() > 0"),
        ("label.data.clone().detach()", "label.clone().detach()"),
        ("label.data + 1 > 0", "label.detach() + 1 > 0"),
    ],
)
def test_comparisons_and_indices_have_no_graph_to_cut(before: str, after: str) -> None:
    assert after in fixed(ASKED.format(before), "TRAIN10")


@pytest.mark.parametrize(
    ("body", "is_fixed"),
    [
        ("    kept = label.view(-1).data\n    return kept.eq(1)\n", True),
        ("    at = label.argmax(0)\n    kept = at.data\n    return kept, at\n", False),
        ("    at = label.argmax(0)\n    at_data = at.data\n    return at_data\n", True),
        ("    # warning: this returns a Variable!\n    return torch.stack([label.view(-1).data])\n", False),
        ("    # as a Variable\n    return torch.autograd.Variable(label.view(-1).data.double())\n", False),
        ("    # the labels\n    return torch.autograd.Variable(label.view(-1).data.double())\n", True),
        ("    # label.view(-1).data, as it is\n    return torch.stack([label.view(-1).data])\n", False),
        ("    return torch.stack([label.view(-1).data.grad])\n", False),
        ("    # the labels\n    return torch.stack([label.view(-1).data])\n", True),
    ],
)
def test_what_would_leave_an_alias_or_a_false_comment_stays(body: str, is_fixed: bool) -> None:
    code = ASKED.partition("    label =")[0] + body
    assert findings(code, "TRAIN10")
    assert (".data" not in fixed(code, "TRAIN10")) is is_fixed


NODES = """\
import torch
from torch import nn


class Apply(nn.Module):
    def forward(self, node):
        h = node.data{key}
        return self.linear(torch.relu(h))
"""


@pytest.mark.parametrize(("key", "count"), [("['h']", 0), ('["h"]', 0), ("[0]", 1)])
def test_a_dict_that_is_called_data_is_no_tensor(key: str, count: int) -> None:
    assert len(findings(NODES.replace("{key}", key), "TRAIN10")) == count


@pytest.mark.parametrize(("library", "count"), [("from lietorch import SE3\n", 0), ("import scipy\n", 1)])
def test_data_of_an_element_of_a_group(library: str, count: int) -> None:
    code = "import torch\n" + library + "def inverse(filler, stream):\n    poses = filler(stream)\n"
    code += "    return poses.inv().data.cpu().numpy()\n"
    assert len(findings(code, "TRAIN10")) == count


@pytest.mark.parametrize(("given", "read"), [("", "x.grad.numpy()"), ("create_graph=True", "x.grad.detach().numpy()")])
def test_a_gradient_has_a_graph_only_where_one_is_asked_for(given: str, read: str) -> None:
    code = "import torch\nx = torch.ones(3, requires_grad=True)\n"
    code += f"(x**2).sum().backward({given})\nprint(x.grad.data.numpy())\n"
    assert f"print({read})" in fixed(code, "TRAIN10")


def test_a_sum_that_is_compared_needs_no_cut() -> None:
    code = "import torch\ndef is_padded(mask: torch.Tensor):\n    return bool(mask.data.sum() == 0)\n"
    assert "return bool(mask.sum() == 0)" in fixed(code, "TRAIN10")
