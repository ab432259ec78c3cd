"""What the collate functions of a file's loaders put into a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

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
