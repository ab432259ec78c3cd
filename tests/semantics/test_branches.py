"""What a test of a value's type says of it in the branches behind it; what is left of a value behind a loop."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from tests.support import findings
from torchlint.semantics.model import Model
from torchlint.semantics.values import Place
from torchlint.source import Source

STEP = """\
import numbers

import torch


def train(model, loader, optimizer, criterion, weights):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        parts = dict(loss=loss)
        loss.backward()
        optimizer.step()
{body}
    return total
"""

NUMBERS = {
    "a number in the other branch": "if torch.is_tensor(loss):\n    total += loss.item()\nelse:\n    total += loss",
    "a number where it was turned into one": "if torch.is_tensor(loss):\n    loss = loss.item()\ntotal += loss",
    "a number where tensors are gone": "if torch.is_tensor(loss):\n    continue\ntotal += loss",
    "asked by attribute": "total += loss.item() if hasattr(loss, 'item') else loss",
    "asked of an entry": "total += parts['loss'].item() if hasattr(parts['loss'], 'item') else parts['loss']",
    "turned round": "total += loss if not isinstance(loss, (torch.Tensor, list)) else loss.item()",
    "a number by its type": "total += loss if isinstance(loss, (int, float)) else loss.item()",
    "a number, since its type is another": "if type(loss) is torch.Tensor:\n    loss = loss.item()\ntotal += loss",
    "a number, since its type is the same": "if type(loss) == float:\n    total += loss",
    "two questions": "if isinstance(loss, float) and weights:\n    total += loss",
    "one of two questions": "if not (torch.is_tensor(loss) or weights):\n    total += loss",
}
TENSORS = {
    "a tensor where it is asked for": "if torch.is_tensor(loss):\n    total += loss",
    "a tensor, since its type is no other": "if type(loss) is not float:\n    total += loss",
    "a tensor behind the branch": "if torch.is_tensor(loss):\n    print('tensor')\ntotal += loss",
    "another value is asked": "total += loss if hasattr(weights, 'item') else loss",
    "perhaps one": "if torch.is_tensor(loss) and x:\n    continue\ntotal += loss",
    "an attribute that says nothing": "total += loss.mean() if hasattr(loss, 'name_of_mine') else loss",
    "bound anew in a branch": "if isinstance(loss, int):\n    loss = 2\nelse:\n    loss = loss * 3\ntotal += loss",
}


def is_found(body: str) -> bool:
    text = STEP.format(body="\n".join(f"        {line}" for line in body.splitlines()))
    return bool(findings(text, "MEM02"))


@pytest.mark.parametrize("body", NUMBERS.values(), ids=NUMBERS)
def test_what_a_test_rules_out_is_no_tensor(body: str) -> None:
    assert not is_found(body)


@pytest.mark.parametrize("body", TENSORS.values(), ids=TENSORS)
def test_nothing_else_is_concluded(body: str) -> None:
    assert is_found(body)


# -- behind a loop

LAYERS = """
import torch

def embed(x, layers, size):
    x = x.cuda()
    {loop}:
        {body}
    return x
"""


@pytest.mark.parametrize(
    ("loop", "body", "place"),
    [
        pytest.param("for layer in layers", "x = layer(x).cpu()", Place.HOST, id="every iteration"),
        pytest.param("for layer in layers", "x = layer(x).cpu() if size else x", Place.ACCELERATOR, id="one of them"),
        pytest.param("for layer in layers", "y = layer(x).cpu()", Place.ACCELERATOR, id="another variable"),
        pytest.param("while len(x) < size", "x = layers[0](x).cpu()", Place.ACCELERATOR, id="a while loop"),
    ],
)
def test_behind_a_loop_a_tensor_is_where_every_iteration_leaves_it(loop: str, body: str, place: Place) -> None:
    source = Source.from_text(LAYERS.format(loop=loop, body=body), Path("module.py"))
    model = Model.build(source, cst.parse_module(source.text))
    returned = model.functions[1].returns[0].value
    assert returned is not None
    assert model.value(returned).place is place
