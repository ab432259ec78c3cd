"""Loops that take the rows one by one so that what is computed of all of them need not be in memory at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.model import Model

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
