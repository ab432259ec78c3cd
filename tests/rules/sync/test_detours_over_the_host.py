"""Tensors that a step copies to the host and back, for what the device could have done."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import training
from tests.support import findings

ONE_HOT = """
import torch
from torch import nn
import sklearn.preprocessing

def binarize(labels, classes):
    labels = labels.cpu().numpy()
    labels = sklearn.preprocessing.label_binarize(labels, classes=range(0, classes))
    {work}
    return torch.FloatTensor(labels).cuda()

class Loss(nn.Module):
    def forward(self, out, labels):
        {call}
        return -(codes * out.log_softmax(1)).sum(1).mean()
"""
CALL = "codes = binarize(labels, out.shape[1])"


@pytest.mark.parametrize(
    "body",
    [
        "best = out.detach().cpu().argmax(1, keepdim=True)\nhits = best.to(device)",
        "host = out.detach().cpu()\nbest = torch.argmax(host, 1)\npicked = host.gather(1, best[:, None]).to(device)",
        "codes = torch.from_numpy(np.eye(10)[out.argmax(1).cpu().numpy()]).to(device)",
        "codes = torch.as_tensor(np.exp(out.detach().cpu().numpy()), device=device)",
        "host = out.argmax(1).to('cpu')\nhost[host == 3] = 0\nguess = host.to(device)",
        "codes = torch.zeros(len(y), 10).scatter_(1, out.argmax(1).cpu()[:, None], 1).to(device)",
    ],
)
def test_what_the_device_can_do_needs_no_way_over_the_host(body: str) -> None:
    (found,) = findings(training(body), "SYNC03")
    assert "back to the device" in found.message


@pytest.mark.parametrize(
    "body",
    [
        # the host is asked for what the device has not, or is slow at
        "from scipy.optimize import linear_sum_assignment\n"
        "rows, columns = linear_sum_assignment(out.detach().cpu().numpy())\npicked = torch.as_tensor(rows).to(device)",
        "drawn = np.random.choice(10, p=out.detach().cpu().numpy())\npicked = torch.as_tensor(drawn).to(device)",
        "size, axes = torch.linalg.eigh(out.detach().cpu())\naxes = axes.to(device)",
        "drawn = torch.multinomial(out.detach().cpu(), 1).to(device)",
        # it is wanted on the host too
        "best = out.detach().cpu().argmax(1)\nhits = best.to(device)\nshow(best)",
        "best = out.detach().cpu().argmax(1)\nhits = best.to(device)\nif best[0] > 3:\n    break",
        "best = out.detach().cpu().argmax(1)\nhits = best.to(device)\nkept[step] = best",
        # nothing is done with it there: the memory of the device is what it makes room for
        "host = out.detach().cpu()\nout = loss = None\nout = host.to(device)",
        # it comes from the host, stays there, or goes there every so many steps
        "host = torch.zeros(3).cpu().exp().to(device)",
        "best = np.argmax(out.detach().cpu().numpy()[0])\nshow(best)",
        "if step % 50 == 0:\n    best = out.detach().cpu().argmax(1).to(device)",
        "for z, _ in loader:\n    turned = np.flip(z.cpu().numpy(), 1).copy()\n"
        "    show(model(torch.from_numpy(turned).to(device)))",
        "host = out.detach().cpu()\nfor i in range(9):\n    show(i, model(host[:, i : i + 4].to(device)))",
    ],
)
def test_other_ways_over_the_host_are_left_alone(body: str) -> None:
    found = findings(training(body, "kept = {}"), "SYNC03")
    assert [finding for finding in found if "back to the device" in finding.message] == []


@pytest.mark.parametrize(
    ("work", "call", "lines"),
    [
        ("labels = labels * 0.9", CALL, [6]),
        ("labels[labels == 0] = 0.1", CALL, [6]),
        ("labels = solve(labels)", CALL, []),
        ("labels = labels * 0.9", "codes = labels", []),
        ("labels = labels * 0.9", "for _ in out:\n            " + CALL, []),
    ],
)
def test_the_helper_of_a_loss_that_nobody_is_seen_to_run(work: str, call: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(ONE_HOT.format(work=work, call=call), "SYNC03")] == lines


MIRROR = """
import numpy as np
import torch

def mirror(maps, pairs):
    assert maps.ndim == 4
    maps = maps[:, :, :, ::-1]
    for a, b in pairs:
        kept = maps[:, a].copy()
        maps[:, a] = maps[:, b]
        maps[:, b] = kept
    {end}

def evaluate(model, loader, pairs, device):
    with torch.no_grad():
        for x, y in loader:
            out = model(x.to(device))
            {call}
            print((out + torch.from_numpy(turned.copy()).to(device)).mean())
"""
MIRRORED = "turned = mirror(out.cpu().numpy(), pairs)"
MIRRORED_PART = """
            if isinstance(out, list):
                turned = out[-1]
            else:
                turned = out
            turned = mirror(turned.cpu().numpy(), pairs)
"""


@pytest.mark.parametrize(
    ("end", "call", "count"),
    [
        ("return maps", MIRRORED, 1),
        ("return maps", MIRRORED_PART, 1),
        ("return np.ascontiguousarray(solve(maps))", MIRRORED, 0),
        ("show(maps)\n    return maps", MIRRORED, 0),
        ("return maps if maps[0, 0, 0, 0] > 1 else None", MIRRORED, 0),
        ("return pairs", MIRRORED, 0),
        ("return maps", MIRRORED + "\n            show(turned)", 0),
    ],
)
def test_a_function_that_only_computes_with_the_copy_does_what_the_device_can(end: str, call: str, count: int) -> None:
    found = findings(MIRROR.format(end=end, call=call), "SYNC03")
    assert len([finding for finding in found if "back to the device" in finding.message]) == count


FOCAL = """
import torch
from torch import nn

class Loss(nn.Module):
    def forward(self, out, labels):
        weight = self.weight
        {weight}
        index = labels.cpu().long()
        codes = torch.zeros(len(labels), out.shape[1]).scatter_(1, index, 1)
        {move}
        return (codes * out).sum(1) * {use}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.loss = nn.Linear(2, 2), Loss()

    def forward(self, x, labels):
        out = self.part(x)
        {call}
"""
MOVE = "if codes.device != out.device: codes = codes.to(out.device)"
MOVED = "weight = weight.to(out.device)"


@pytest.mark.parametrize(
    ("weight", "move", "use", "call", "lines"),
    [
        (MOVED, MOVE, "weight[index]", "return self.loss(out, labels)", [8]),
        (MOVED, "codes = codes.to(out.device)", "weight[index]", "return self.loss(out, labels)", [8]),
        (MOVED, "if len(out) > 3: codes = codes.to(out.device)", "weight[index]", "return self.loss(out, labels)", []),
        ("pass", MOVE, "weight[index]", "return self.loss(out, labels)", []),
        (MOVED, MOVE, "weight[index]", "return [self.loss(one, labels) for one in out]", []),
        (MOVED, MOVE, "weight[index]", "return out", [8]),  # then the loss is there for others
    ],
)
def test_codes_that_are_moved_where_they_are_not_on_the_device(
    weight: str, move: str, use: str, call: str, lines: list[int]
) -> None:
    code = FOCAL.format(weight=weight, move=move, use=use, call=call)
    assert [finding.line for finding in findings(code, "SYNC03")] == lines


PICKED = """
import torch
from torch.utils.data import DataLoader

@torch.no_grad()
def evaluate(net: torch.nn.Module, loader: DataLoader):
    net.eval()
    for x, y in loader:
        y = y.cuda()
        out = net(x.cuda())
        picked = {picked}
        print(len(picked), out.shape)
"""


@pytest.mark.parametrize(
    ("picked", "count"),
    [
        ("y[out > 0].tolist()", 0),
        ("torch.arange(9).cuda()[out[0] > 0].tolist()", 0),
        ("y[y > 0].tolist()", 1),
        ("y[0, :3].tolist()", 1),
    ],
)
def test_what_the_device_picks_the_host_does_not_have(picked: str, count: int) -> None:
    found = findings(PICKED.format(picked=picked), "SYNC03")
    assert len([finding for finding in found if "copies back" in finding.message]) == count
