"""MEM05: a second pass in a step, of which the loss knows nothing, be it under the name of the first."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import line_of
from tests.support import findings

ODIN = """
import torch


def scores(net, loader, criterion):
    net.eval()
    found = []
    for x, y in loader:
        x = x.cuda().requires_grad_()
        out = net(x)
        loss = criterion(out / 2, y.cuda()){more}
        loss.backward()
        {name} = net(x.data - 0.1 * x.grad.sign())  # again
        {name} = {name} / 1000
        found.append({name}.data.max(1)[0].cpu())
    return torch.cat(found)
"""


@pytest.mark.parametrize(("name", "more"), [("again", ""), ("out", ""), ("out", "\n        loss += out.mean()")])
def test_a_second_pass_under_the_name_of_the_first(name: str, more: str) -> None:
    program = ODIN.lstrip().format(name=name, more=more)
    found = findings(program, "MEM05", "MEM09")
    assert [(each.code, each.line) for each in found] == [("MEM05", line_of(program, "# again"))]


TEACHER = """
import torch


def train(net, teacher, loader, optimizer):
    teacher.eval()
    for x, y in loader:
        optimizer.zero_grad()
        aim = teacher(x.cuda())
        aim = aim.detach().softmax(1)
        loss = (net(x.cuda()) - aim).abs().mean()
        loss += (net(y.cuda()) - {part}).abs().mean()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("part", ["aim", "1"])
def test_a_pass_that_the_loss_is_computed_from_is_a_part_of_the_step(part: str) -> None:
    assert findings(TEACHER.format(part=part), "MEM05") == []
