"""Variables that get another thing when what they held is used up: `loss = loss.item() / n` after the backward pass."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from torchlint.semantics.entities import Binding, Write
from torchlint.semantics.scopes import Scopes

Places = Mapping[cst.CSTNode, int]


def is_behind(scopes: Scopes, places: Places, binding: Binding, method: str, target: cst.CSTNode) -> bool:
    """Whether no call of a method of a local variable, of which there are some, can meet what is assigned at a target.

    What the call proves of the variable does not hold for that value. `places` number the nodes of the file in order.
    """
    if binding.cls is not None or binding.shared:
        return False
    write = next((write for write in binding.writes if write.target is target), None)
    receivers = [read for read in binding.reads if _is_receiver(scopes, read, method)]
    if write is None or write.kind != "assign" or not receivers:
        return False
    return all(
        places[read] < places[target] and not _comes_round(scopes, places, binding, write, read) for read in receivers
    )


def _is_receiver(scopes: Scopes, read: cst.CSTNode, method: str) -> bool:
    parent = scopes.parents.get(read)
    return isinstance(parent, cst.Attribute) and parent.attr.value == method


def _comes_round(scopes: Scopes, places: Places, binding: Binding, write: Write, read: cst.CSTNode) -> bool:
    """Whether the next iteration of a loop around both may read the value before the variable gets another."""
    around = scopes.contexts[read].loop
    loops = list(around.around()) if around is not None else []
    common = next((loop for loop in loops if write.loop is not None and loop in write.loop.around()), None)
    if common is None:
        return False
    above = set(scopes.ancestors(read))
    return not any(
        other.loop is common and places[other.target] < places[read] and scopes.parents.get(other.statement) in above
        for other in binding.writes
        if other.kind == "assign"
    )
