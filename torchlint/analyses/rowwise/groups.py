"""Loops that take steps because so many rows of a tensor belong together, and not for want of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.names import spelled
from torchlint.analyses.rowwise.state import Sink
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.state import Trace
    from torchlint.analyses.rowwise.work import Root


def are_groups(root: Root, trace: Trace) -> bool:
    """`for i in range(0, len(x), n)` with `x[i : i + n]`, where the loop only fills tensors, and takes of one of them
    the row `[i]` alone: whoever cuts a batch has use for all of its rows."""
    if not isinstance(root, cst.For) or not isinstance(root.target, cst.Name) or not isinstance(root.iter, cst.Call):
        return False
    if len(root.iter.args) != 3 or any(kept.sink is not Sink.FILL for kept in trace.kept):
        return False
    counter, step = root.target.value, spelled(root.iter.args[2].value)
    whole = {f"{counter}:{counter}+{step}", f"{counter}:{step}+{counter}"}
    subscripts = [node for node in walk(root.body) if isinstance(node, cst.Subscript)]
    firsts = [(spelled(node.value), node.slice[0].slice) for node in subscripts]
    cut = [part for _, part in firsts if isinstance(part, cst.Slice) and _mentions(part, counter)]
    if not cut or any("".join(spelled(part).split()) not in whole for part in cut):
        return False
    alone = (part.value for name, part in firsts if name in trace.subjects and isinstance(part, cst.Index))
    return any(isinstance(index, cst.Name) and index.value == counter for index in alone)


def _mentions(part: cst.CSTNode, name: str) -> bool:
    return any(isinstance(node, cst.Name) and node.value == name for node in walk(part))
