"""Loops whose iterations are the epochs of one training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.entities import Role
from torchlint.semantics.transfer import element_of
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model


def counts_epochs(loop: Loop, model: Model) -> bool:
    """Whether each iteration is an epoch of one training: folds, phases and datasets are not counted by a number, and
    `range(len(folds))` has a length that says what there is one of."""
    if loop.role is not Role.EPOCHS or loop.is_comprehension:
        return False
    if isinstance(loop.node, cst.While):
        return True
    is_counted = loop.iterates.ref == "builtins.range" or element_of(loop.iterates).kind is Kind.NUMBER
    return is_counted and not _runs_once(loop, model) and not _is_over_entries(loop, model)


def _runs_once(loop: Loop, model: Model) -> bool:
    for node in walk(loop.iterable) if loop.iterable is not None else ():
        if isinstance(node, cst.Call) and model.call(node).callee == "builtins.range":
            bounds = [model.value(arg.value).constant for arg in node.args]
            numbers = [bound for bound in bounds if isinstance(bound, int)]
            if 0 < len(numbers) < 3 and len(numbers) == len(bounds):
                return len(range(*numbers)) < 2
    return False


def _is_over_entries(loop: Loop, model: Model) -> bool:
    """`range(len(folds))`"""
    nodes = walk(loop.iterable) if loop.iterable is not None else ()
    return any(isinstance(node, cst.Call) and model.call(node).callee == "builtins.len" for node in nodes)
