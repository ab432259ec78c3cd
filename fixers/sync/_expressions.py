"""What fixes that move a read of the device need to know: names that are free, and expressions that can move."""

from __future__ import annotations

import builtins
import keyword
from itertools import count
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.spelling import is_free
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def new_name(model: Model, wish: str, at: cst.CSTNode, taken: tuple[str, ...] = ()) -> str:
    """The name, or the name with a number, that means nothing at a place yet."""
    for number in count(1):
        name = wish if number == 1 else f"{wish}_{number}"
        is_known = name in taken or hasattr(builtins, name) or keyword.iskeyword(name)
        if not is_known and is_free(model, name, at):
            return name
    raise AssertionError


def only_computes(model: Model, expression: cst.BaseExpression) -> bool:
    """No assignment, and no call but of torch's functions and of methods of tensors that change nothing."""
    return all(_only_computes(model, node) for node in walk(expression))


def _only_computes(model: Model, node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield)):
        return False
    if not isinstance(node, cst.Call):
        return True
    call = model.call(node)
    name = call.method or (call.callee or "").rpartition(".")[2]
    of_tensor = call.receiver_value.is_(Kind.TENSOR, Kind.BATCH)
    is_known = of_tensor or (call.callee or "").startswith(("torch.", "math.", "builtins."))
    return is_known and not call.is_forward and not name.endswith("_")
