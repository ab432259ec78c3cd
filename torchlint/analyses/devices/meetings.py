"""Tensors that are combined with a tensor on the host, and so have to be there, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.datasets import held_on_accelerator
from torchlint.semantics.transfer import place_of_target
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Place
from torchlint.semantics.vocabulary import is_loss_function

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model


def meets_host_tensor(model: Model, tensor: cst.BaseExpression) -> bool:
    """`(guess == truth).sum()` and `cross_entropy(guess, truth)`, where the truth is on the host."""
    while True:
        match tensor:
            case cst.Call(func=cst.Attribute(value=left, attr=cst.Name("eq" | "ne")), args=[cst.Arg(value=right)]):
                return any(_is_on_host(model, side) for side in (left, right))
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
                return any(_is_on_host(model, side) for side in (left, right))
            case cst.Call() if _is_loss(model.call(tensor).callee or ""):
                return any(_is_on_host(model, arg.value) for arg in model.call(tensor).arguments)
            case cst.Call(func=cst.Attribute(value=inner)) | cst.Subscript(value=inner):
                tensor = inner
            case cst.Name() if (made := _made(model, tensor)) is not None:
                tensor = made
            case _:
                return False


def _is_loss(callee: str) -> bool:
    return is_loss_function(callee) or (callee.startswith("torch.nn.") and callee.endswith("Loss"))


def _made(model: Model, name: cst.Name) -> cst.BaseExpression | None:
    """What the only write of a variable gives it."""
    binding = model.binding(name)
    written = binding.writes[0] if binding is not None and len(binding.writes) == 1 else None
    if written is None or written.kind != "assign" or written.unpacked:
        return None
    return written.value if isinstance(written.value, (cst.Call, cst.Comparison)) else None


def _is_part(model: Model, node: cst.CSTNode) -> bool:
    """`batch.y`, but not the name of a method that is called."""
    return isinstance(node, cst.Attribute) and not isinstance(model.parent(node), cst.Call)


def _taken(binding: Binding | None) -> Iterator[cst.BaseExpression]:
    """What a variable is made of, unless a loop gives it: `data[1]` of `y = data[1]`."""
    writes = binding.writes if binding is not None else ()
    yield from (write.value for write in writes if write.value is not None and write.kind != "for")


def _is_on_host(model: Model, tensor: cst.BaseExpression) -> bool:
    """As the loader gives it, or moved there, or made of an array: `torch.from_numpy(y).long()`."""
    value = model.value(tensor)
    binding = model.binding(tensor)
    made = [write.value for write in binding.writes if write.value is not None] if binding is not None else []
    if value.place is not Place.HOST or (value.kind is Kind.BATCH and model.once(_yields_on_device)):
        return False
    if value.kind is Kind.BATCH:  # but `batch.y` is of an object that may lie on a device
        return not any(_is_part(model, node) for each in [tensor, *_taken(binding)] for node in walk(each))
    if any(call.callee == "torch.from_numpy" for each in made for call in model.calls_in(each)):
        return True
    return bool(made) and all(isinstance(each, cst.Call) and _moves_to_host(model, model.call(each)) for each in made)


def _yields_on_device(model: Model) -> bool:
    """Whether a loader of the file is given rows that lie on a device, or a function that puts batches there."""
    given = (arg.value for call in model.calls if call.value.kind is Kind.LOADER for arg in call.arguments)
    return any(held_on_accelerator(node, model) for node in given)


def _moves_to_host(model: Model, call: Call) -> bool:
    to = [place_of_target(model.value(arg.value)) for arg in call.arguments]
    return call.method == "cpu" or (call.method == "to" and Place.HOST in to)
