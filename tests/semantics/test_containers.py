"""What is in lists and dicts, and what becomes of it."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.programs import binding_of, model_of, value_of
from torchlint.analyses.fate import Fate, fate_of
from torchlint.semantics.values import Grad, Kind, Place, Value


@pytest.mark.parametrize(
    ("use", "fate"),
    [
        ("sum(losses).backward()", Fate.BACKWARD),
        ("total = torch.stack(losses).mean()\ntotal.backward()", Fate.BACKWARD),
        ("scaler.scale(losses[-1]).backward()", Fate.BACKWARD),
        ("torch.autograd.grad(losses[0], w)", Fate.BACKWARD),
        ("print(sum(losses) / len(losses))", Fate.CONSUMED),
        ("history = [l.item() for l in losses]", Fate.CONSUMED),
        ("plot(losses)", Fate.CONSUMED),
        ("handle(losses)", Fate.ESCAPES),
    ],
)
def test_what_becomes_of_a_list_of_losses(use: str, fate: Fate) -> None:
    model = model_of(f"import torch\nlosses = []\nfor x in data:\n    losses.append(net(x).sum())\n{use}\n")
    assert fate_of(model, binding_of(model, "losses")) == fate


@pytest.mark.parametrize(
    "use",
    ["", "sum(kept)", "f = lambda: kept[-1]", "for old in kept:\n        print(old)"],
    ids=["nothing", "a sum", "a lambda", "a loop"],
)
def test_what_a_loop_puts_into_a_list_is_in_it_in_later_iterations(use: str) -> None:
    model = model_of(f"import torch\nkept = []\nfor x in data:\n    {use or 'pass'}\n    kept.append(torch.ones(2))\n")
    added_to = next(read for read in binding_of(model, "kept").reads if isinstance(model.parent(read), cst.Attribute))
    assert model.value(added_to).element == Value(Kind.TENSOR, Grad.DETACHED, Place.HOST, rank=1, dtype="float")


def test_what_is_read_from_a_list_that_its_loop_fills() -> None:
    model = model_of(
        "import torch\nkept = []\nfor x in data:\n    y = [k for k in kept]\n    kept.append(torch.ones(2))\n"
    )
    element = value_of(model, "y").element
    assert element is not None
    assert element.kind is Kind.TENSOR


def test_a_list_returned_to_a_caller_that_calls_backward_reaches_it() -> None:
    model = model_of(
        """
        import torch
        def collect(data):
            losses = []
            for x in data:
                losses.append(net(x).sum())
            return losses
        sum(collect(data)).backward()
        """
    )
    assert Fate.BACKWARD in fate_of(model, binding_of(model, "losses", "collect"))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        pytest.param('if fast:\n    parts["b"] = [1]', Kind.TENSOR, id="another key in a branch"),
        pytest.param('if fast:\n    parts["a"] = [1]', Kind.UNKNOWN, id="this key in a branch"),
        pytest.param('parts[name] = [1]\nparts["a"] = x', Kind.TENSOR, id="any key, and this one later"),
        pytest.param("parts[name] = [1]", Kind.UNKNOWN, id="any key"),
        pytest.param("parts[name] = x", Kind.TENSOR, id="any key that holds the same"),
        pytest.param('if fast:\n    parts["b"] = 1\nparts.update(b=[1])', Kind.TENSOR, id="an update of another key"),
        pytest.param('if fast:\n    parts["b"] = 1\nparts.update(more)', Kind.UNKNOWN, id="an update with anything"),
    ],
)
def test_what_a_dict_holds_under_one_of_its_keys(change: str, kind: Kind) -> None:
    code = f'import torch\nfrom m import fast, more, name\n\nx = torch.ones(3)\nparts = {{"a": x}}\n{change}\n'
    assert value_of(model_of(f'{code}out = parts["a"]\n'), "out").kind is kind


JOINED = """
import torch

def f(parts, criteria, x):
    losses = [c(x) for c in criteria]
    total = {}
    first = losses[0]
    pair = parts(x), 3
    torch.stack(pair)
    left, right = pair
"""


def test_what_torch_stacks_are_tensors_and_what_is_known_stays() -> None:
    model = model_of(JOINED.format("torch.stack(losses).mean()"))
    assert value_of(model, "first", "f").kind is Kind.TENSOR
    assert value_of(model, "left", "f").kind is Kind.TENSOR
    assert value_of(model, "right", "f").kind is Kind.NUMBER
    assert value_of(model_of(JOINED.format("sum(losses)")), "first", "f").kind is Kind.UNKNOWN


def test_a_list_that_is_made_anew_of_itself_may_have_held_anything() -> None:
    code = "import torch\ndef f(read):\n    rows = [r for r in read()]\n    first = rows[0]\n    {}\n    return rows\n"
    assert value_of(model_of(code.format("rows = torch.stack(rows)")), "first", "f").kind is Kind.TENSOR
    anew = "rows = torch.stack([torch.tensor(row) for row in rows] + rows)\n    rows = torch.stack(rows)"
    assert value_of(model_of(code.format(anew)), "first", "f").kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("entries", "asked", "moved", "place"),
    [
        ("batch.items()", "key != 'names'", "batch[key] = part.to('cuda')", Place.ACCELERATOR),
        ("batch.items()", "key != 'names'", "batch[key] = part.float()", Place.HOST),
        ("other.items()", "key != 'names'", "batch[key] = part.to('cuda')", Place.HOST),
        ("batch.items()", "torch.is_tensor(batch[key])", "batch[key] = part.to('cuda')", Place.ACCELERATOR),
        ("batch.items()", "key == 'image'", "batch[key] = part.to('cuda')", Place.HOST),
        ("batch.items()", "key in ('image', 'mask')", "batch[key] = part.to('cuda')", Place.HOST),
        ("batch.items()", "'image' in key", "batch[key] = part.to('cuda')", Place.HOST),
        ("batch.items()", "key.startswith('image')", "batch[key] = part.to('cuda')", Place.HOST),
        ("batch.items()", "rows", "batch['image'] = batch['image'].to('cuda')", Place.HOST),
        ("batch.items()", "rows", "batch[key, 0] = part.to('cuda')", Place.HOST),
    ],
)
def test_a_batch_of_which_a_loop_moves_all_parts(entries: str, asked: str, moved: str, place: Place) -> None:
    model = model_of(
        f"""
        import torch
        from torch.utils.data import DataLoader
        for batch in DataLoader(rows):
            for key, part in {entries}:
                if {asked}:
                    {moved}
            lengths = batch["lengths"]
        """
    )
    assert value_of(model, "lengths").place is place


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("dict(net.named_parameters())", Kind.TENSOR),
        ("OrderedDict(net.named_parameters())", Kind.TENSOR),
        ("dict(OrderedDict(net.named_parameters()))", Kind.TENSOR),
        ("dict(zip(names, range(9)))", Kind.NUMBER),
        ("OrderedDict(rows)", Kind.UNKNOWN),
        ("dict(rows)", Kind.UNKNOWN),
    ],
)
def test_what_a_dict_holds_that_is_made_of_pairs(made: str, kind: Kind) -> None:
    model = model_of(
        "import torch\nfrom collections import OrderedDict\nnet = torch.nn.Linear(2, 2)\n"
        f"for name, held in {made}.items():\n    kept = held\n"
    )
    assert value_of(model, "kept").kind is kind


@pytest.mark.parametrize(
    ("inputs", "place"),
    [("x.cuda()", Place.ACCELERATOR), ("[x.cuda(), y.cuda()]", Place.ACCELERATOR), ("[x.cuda(), z]", Place.UNKNOWN)],
)
def test_a_gradient_is_where_its_input_is(inputs: str, place: Place) -> None:
    code = f"import torch\nx, y = torch.ones(3), torch.ones(3)\ng = torch.autograd.grad(loss, {inputs})[0]\n"
    assert value_of(model_of(code), "g").place is place


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("data.num_graphs", Kind.NUMBER),
        ('data["paper"].batch_size', Kind.NUMBER),
        ("data.x", Kind.BATCH),
        ("data.num_atoms", Kind.BATCH),  # of each graph
    ],
)
def test_a_batch_of_graphs_counts_its_parts_with_numbers(asked: str, kind: Kind) -> None:
    model = model_of(
        f"""
        from torch_geometric.loader import DataLoader

        for data in DataLoader(graphs, batch_size=8):
            found = {asked}
        """
    )
    assert value_of(model, "found").kind is kind
