"""Indices that are tensors: whether they select one row or several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_MADE = re.compile(r"torch\.(rand\w*|zeros|ones|full|empty|tensor)")


def takes_several(model: Model, index: cst.BaseExpression) -> bool:
    """Whether an index is a tensor of places, and takes as many rows as there are: `(places + i) % n`, but not
    `start + i` of `start = torch.randint(n, (1,))`."""
    if not model.value(index).rank:
        return False
    tensors = [part for part in walk(index) if isinstance(part, cst.Name) and model.value(part).kind is Kind.TENSOR]
    return not tensors or not all(_is_of_one_number(model, tensor) for tensor in tensors)


def _is_of_one_number(model: Model, tensor: cst.Name) -> bool:
    """Of a variable: whether it is made, once, with a size of one."""
    binding = model.binding(tensor)
    write = binding.writes[0] if binding is not None and len(binding.writes) == 1 else None
    made = write.value if write is not None and write.kind == "assign" and not write.unpacked else None
    while isinstance(made, cst.Call):
        if _MADE.fullmatch(model.call(made).callee or ""):
            return any(map(_is_one, made.args))
        made = made.func.value if isinstance(made.func, cst.Attribute) else None
    return False


def _is_one(argument: cst.Arg) -> bool:
    """`(1,)` or `[1]`, a size."""
    match argument.value:
        case cst.Tuple(elements=[element]) | cst.List(elements=[element]):
            return isinstance(element.value, cst.Integer) and element.value.value == "1"
    return False
