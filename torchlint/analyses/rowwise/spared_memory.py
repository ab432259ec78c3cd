"""Loops that take the rows one by one so that what is computed of all of them need not be in memory at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.moves import moves_to_accelerator
from torchlint.semantics.dataflow import text

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_RANK = re.compile(r"\blen\([\w.]+\.(shape|size\(\))\)|\.ndim\b|\.n?dim(ension)?\(\)")
_MEMORY = re.compile(r"(?i)#.*\b(v?ram|mem(ory)?|oom)\b")


def spares_memory(model: Model, loop: cst.CSTNode) -> bool:
    """Whether a comment beside the first line of a loop, or right above it, says so."""
    line = model.line(loop)
    said = [model.source.line(line)]
    while line > 1 and (above := model.source.line(line - 1)).lstrip().startswith("#"):
        said.append(above)
        line -= 1
    return any(_MEMORY.search(each) for each in said)


def frees_memory(model: Model, loop: cst.CSTNode) -> bool:
    """Whether the function of a loop hands cached blocks back: one that takes the layers of a network to the GPU one by
    one has no memory for the activations of all rows."""
    return any(call.callee == "torch.cuda.empty_cache" for call in model.function(loop).calls)


def streams_rows(model: Model, loop: cst.CSTNode) -> bool:
    """Whether each row goes to the device, and what is computed of it is copied into a row of a tensor that is there
    already: neither tensor has to fit on the device."""
    calls = list(model.calls_in(loop))
    stored = any(call.method == "copy_" and isinstance(call.receiver, cst.Subscript) for call in calls)
    return stored and any(moves_to_accelerator(call, model) for call in calls)


def is_one_of_two_ways(model: Model, loop: cst.CSTNode, step: cst.CSTNode) -> bool:
    """Whether the other branch of a condition around a loop gives all rows at once to what the loop gives one by one:
    whoever runs the program says which. How many dimensions the data has is nobody's choice."""
    if not isinstance(step, cst.Call):
        return False
    way = list(model.ancestors(loop))
    for above in way:
        if isinstance(above, cst.If) and isinstance(above.orelse, cst.Else) and not _RANK.search(text(above.test)):
            other = above.orelse.body if above.body in way else above.body
            calls = (call for call in model.calls_in(other) if model.loop(call.node) is model.loop(loop))
            if any(text(call.node.func) == text(step.func) for call in calls):
                return True
    return False
