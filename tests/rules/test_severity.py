"""How much a single finding weighs, where findings of one rule weigh differently."""

from __future__ import annotations

import pytest

from tests.support import findings
from torchlint.finding import Severity

HEAD = """
import torch
from torch.autograd import Variable

model = torch.nn.Linear(4, 1)
criterion = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(2, 4), torch.randn(2, 1)) for _ in range(3)]
x = torch.randn(2, 4)
loss = criterion(model(x), torch.randn(2, 1))
p = model.weight
"""


def severity_of(code: str, rule: str) -> Severity:
    (found,) = findings(HEAD + code, rule)
    return found.severity


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        ("print(loss.data.shape)\n", Severity.INFO),
        ("print(p.data.norm())\n", Severity.INFO),
        ("kept = [loss.data]\nloss.backward()\nprint(kept)\n", Severity.WARNING),
        ("print(loss.data[0])\n", Severity.ERROR),
        ("print(model(Variable(x)))\n", Severity.INFO),
        ("print(model(Variable(model(x) + x)))\n", Severity.WARNING),
        ("print(model(Variable(x, volatile=True)))\n", Severity.ERROR),
    ],
)
def test_an_old_idiom_weighs_as_much_as_it_does_today(code: str, severity: Severity) -> None:
    assert severity_of(code, "TRAIN10") is severity


STEP = """
{before}
for x, y in batches:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
{backward}    {keep}
print({after})
"""


@pytest.mark.parametrize(
    ("rule", "before", "keep", "after"),
    [
        ("MEM01", "kept = []", "kept.append(loss)", "sum(kept).item()"),
        ("MEM02", "total = 0", "total += loss", "total.item()"),
        ("MEM03", "def keep(loss):\n    history.append(loss)\n\n\nhistory = []", "keep(loss)", "history[0].item()"),
    ],
)
@pytest.mark.parametrize("trains", [True, False])
def test_a_graph_with_its_activations_weighs_more_than_what_a_backward_pass_leaves(
    rule: str, before: str, keep: str, after: str, trains: bool
) -> None:
    backward = "    loss.backward()\n    optimizer.step()\n" if trains else ""
    code = STEP.format(before=before, keep=keep, after=after, backward=backward)
    assert severity_of(code, rule) is (Severity.WARNING if trains else Severity.ERROR)
