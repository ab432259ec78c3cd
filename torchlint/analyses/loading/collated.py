"""What the collate functions of a file's loaders put into a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.loaders import loaders
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model


def collating(loader: Loader) -> list[tuple[Model, Function]]:
    """The functions that may collate the batches, each with the file that it is in; of objects, their `__call__`."""
    model, collate = loader.model, loader.option("collate_fn")
    if not collate.given:
        return []
    behind = model.function_behind(collate.value)
    if behind is not None:
        return [behind]
    found = [_run_by_call(node, model) for node in collate.value.origins]
    return [(home, function) for home, function in found if function is not None]


def _run_by_call(made: cst.CSTNode, model: Model) -> tuple[Model, Function | None]:
    """The function that a definition is, or the `__call__` of the object that `Padding(0)` makes."""
    name = model.call(made).callee if isinstance(made, cst.Call) else None
    behind = model.class_behind(name) if name is not None else None
    return (model, model.function_of(made)) if behind is None else (behind[0], behind[1].method("__call__"))


def is_collated_as_list(model: Model, entry: cst.BaseExpression) -> bool:
    """`batch["drops"]`, for which every collate function of its loaders has made a list, that no copy to a device makes
    a tensor of."""
    entry = _written(model, entry)
    match entry:
        case cst.Subscript(
            value=cst.Name() as batch, slice=[cst.SubscriptElement(cst.Index(cst.SimpleString() as name))]
        ):
            binding, key = model.binding(batch), name.evaluated_value
        case _:
            return False
    drawn = [write.loop for write in writes_reaching(model, binding, batch)] if binding is not None else []
    origins = frozenset(origin for loop in drawn if loop is not None for origin in loop.iterates.origins)
    functions = [each for loader in loaders(model) if loader.built & origins for each in collating(loader)]
    made = [home.value(result) for home, function in functions for result in function.results]
    fields = [value.field(key) if isinstance(key, str) else None for value in made]
    return bool(fields) and all(field is not None and field.kind is Kind.LIST for field in fields)


def _written(model: Model, entry: cst.BaseExpression) -> cst.BaseExpression:
    """`batch["drops"]` of a variable that holds it where it is read."""
    binding = model.binding(entry)
    writes = writes_reaching(model, binding, entry) if binding is not None else []
    value = writes[0].value if len(writes) == 1 and writes[0].kind == "assign" else None
    return value if value is not None else entry
