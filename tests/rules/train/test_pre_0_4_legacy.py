"""TRAIN10: `Variable`, `volatile` and reads of `.data`."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings, fixed

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Linear(4, 3)
x = torch.randn(2, 4)
loss = F.cross_entropy(net(x), torch.tensor([0, 2]))
"""


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "TRAIN10")]


def marked(code: str) -> list[int]:
    return [number for number, line in enumerate(code.splitlines(), 1) if "# here" in line]


LEGACY = {
    "a variable around a batch": """\
from torch.autograd import Variable
out = net(Variable(x))  # here
""",
    "the first element of a loss": "value = loss.data[0]  # here\n",
    "values that are printed": "print(net.weight.data.norm())  # here\n",
    "values that live on": "weights = net.weight.data  # here\n",
    "the best class": "_, best = net(x).data.max(1)  # here\n",
    "samples that are scaled before they are shown": """\
fake = net(x)
fake.data = fake.data.mul(0.5)  # here
print(fake.data.tolist())  # here
""",
    "weights that an average follows": """\
def follow(module, averages):
    for name, p in module.named_parameters():
        averages[name].data = 0.9 * averages[name].data + 0.1 * p.data  # here
""",
    "a type": "kind = net.weight.data.dtype  # here\n",
}


@pytest.mark.parametrize("case", LEGACY)
def test_an_idiom_is_found(case: str) -> None:
    assert found(LEGACY[case]) == marked(LEGACY[case])


LOOK_ALIKES = {
    "an initialisation": "net.weight.data.normal_(0, 0.1)\n",
    "an update in place": "net.weight.data -= 0.1 * x[:1]\n",
    "an update by assignment": "net.weight.data = 0.9 * net.weight.data\n",
    "a step by hand": "net.weight.data = net.weight.data - 0.1 * net.weight.grad.data\n",
    "an update in two statements": "new = 0.9 * net.weight.data\nnet.weight.data = new\n",
    "weights that are exchanged": """\
def swap(parameters, averages):
    kept = []
    for p, average in zip(parameters, averages):
        kept.append(p.data)
        p.data = average
    return kept

swap(net.parameters(), [torch.zeros(3, 4), torch.zeros(3)])
""",
    "an initialiser": "nn.init.zeros_(net.bias.data)\n",
    "the data of a packed sequence": """\
packed = nn.utils.rnn.pack_sequence([torch.ones(2, 4)])
values = packed.data
""",
    "an object of a class of tensors, seen from inside": """\
class Tagged(torch.Tensor):
    def __deepcopy__(self, memo):
        return type(self)(self.data.clone())
""",
    "the data of an object of its own, seen from inside": """\
class Batch:
    def __init__(self, data):
        self.data = data

    def mean(self):
        return self.data.mean()
""",
}


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_look_alikes_are_silent(case: str) -> None:
    assert found(LOOK_ALIKES[case]) == []


def run(code: str) -> dict[str, object]:
    namespace: dict[str, object] = {"__name__": "program"}
    exec(compile(code, "program", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("case", [case for case in LEGACY if case != "the first element of a loss"])
def test_the_fixed_program_computes_the_same(case: str) -> None:
    code = SETUP + LEGACY[case]
    after = fixed(code, "TRAIN10")
    assert findings(after, "TRAIN10") == []
    old, new = run(code), run(after)
    for name, value in old.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, new[name], rtol=0, atol=0)


def test_the_first_element_of_a_loss_becomes_a_number() -> None:
    after = fixed(SETUP + LEGACY["the first element of a loss"], "TRAIN10")
    assert "loss.item()" in after
    assert isinstance(run(after)["value"], float)
