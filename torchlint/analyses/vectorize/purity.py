"""Whether an expression may be evaluated once instead of once per iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.vocabulary import PURE_FUNCTIONS, PURE_METHODS
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_OPAQUE = (cst.Lambda, cst.NamedExpr, cst.Await, cst.Yield, cst.BaseComp, cst.StarredElement)


def impurity(
    model: Model, node: cst.BaseExpression, computes: Callable[[cst.Call], bool] = lambda call: False
) -> str | None:
    """What in the expression may have an effect, or another value next time; None if nothing can. `computes` knows of
    more calls that they only compute."""
    for part in walk(node):
        if isinstance(part, _OPAQUE):
            return f"`{text(part)}` may do anything"
        if isinstance(part, cst.Call) and not _is_pure(model, part) and not computes(part):
            return f"`{text(part.func)}` may do anything"
    return None


def _is_pure(model: Model, call: cst.Call) -> bool:
    name = model.qualified(call.func)
    if name is not None:
        if name.startswith("math."):
            return True
        return name.removeprefix("builtins.") in PURE_FUNCTIONS or name in PURE_FUNCTIONS
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in PURE_METHODS
