"""Functions that make a network and hand it on in evaluation mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import text, upstream
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model


def hands_on_evaluated(home: Model, function: Function) -> bool:
    """Whether a function calls `eval()` on what it returns, and `train()` on nothing; a part of a new network may be in
    evaluation mode, and the rest not."""
    if function.name == "__init__" or ".train(" in text(function.node):
        return False
    made = [node for result in function.results for node in walk(result)]
    given = {home.binding(node) for node in made if isinstance(node, (cst.Name, cst.Attribute))} - {None}
    evaluated = (call for call in function.calls if call.method == "eval")
    return any(
        call.node in made or (call.receiver is not None and bool(given & {*upstream(home, call.receiver)}))
        for call in evaluated
    )
