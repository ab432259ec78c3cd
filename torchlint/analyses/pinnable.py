"""Batches that page-locked memory means nothing to: torch pins tensors, containers of them, and what has a method for
it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.analyses.loaders import Loader
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model


def are_left_alone(loader: Loader) -> bool:
    """Whether the collate function returns an object of a class of the project that has no `pin_memory()`."""
    model, collate = loader.model, loader.option("collate_fn")
    if not collate.given:
        return False
    behind = model.function_behind(collate.value)
    local = ((model, model.function_of(node)) for node in collate.value.origins)
    functions = [behind] if behind is not None else [(home, each) for home, each in local if each is not None]
    return bool(functions) and all(_returns_own_objects(function, home, model) for home, function in functions)


def _returns_own_objects(function: Function, home: Model, model: Model) -> bool:
    returned = [node.value for node in function.returns]
    return bool(returned) and all(node is not None and _is_own_object(node, home, model) for node in returned)


def _is_own_object(node: cst.BaseExpression, home: Model, model: Model) -> bool:
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return False
    header = re.compile(rf"^class {node.func.value}(?:\(\s*(?:object)?\s*\))?:", re.MULTILINE)
    texts = {source.path: source.text for source in (home.source, model.source, *model.files_beside())}
    defining = [text for text in texts.values() if header.search(text)]
    return bool(defining) and not any("pin_memory" in text for text in defining)
