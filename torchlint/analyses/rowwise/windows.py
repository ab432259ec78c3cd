"""Loops that cut windows of one length out of a tensor, and put them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.collecting import is_collected, is_stacked
from torchlint.analyses.rowwise.indices import slices_of
from torchlint.analyses.rowwise.state import Fault, Sink
from torchlint.semantics.tree import bound_names, walk

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.state import Kept, Trace
    from torchlint.analyses.rowwise.work import Root
    from torchlint.semantics.model import Model


def cuts_windows(model: Model, root: Root, trace: Trace) -> bool:
    """Whether all that a loop does is to take `x[i : i + n]` of a tensor, for lists that become one. Where the loop
    takes steps, torch.stack tells windows from batches, of which the last may be shorter."""
    if not trace.kept or any(step.name != ".narrow" for step in trace.steps):
        return False
    if not all(_is_window(kept, set(_counters(root))) for kept in trace.kept):
        return False
    if trace.faults:
        return set(trace.faults) == {Fault.CHUNKS} and all(_is_stacked(model, root, kept) for kept in trace.kept)
    if isinstance(root, cst.For):
        return all(is_collected(model, root, kept.node) for kept in trace.kept)
    if isinstance(root, cst.Call):
        return model.qualified(root.func) != "builtins.sum"  # of two or three, mostly
    return is_collected(model, root)


def _is_stacked(model: Model, root: Root, kept: Kept) -> bool:
    if isinstance(root, cst.For):
        return is_collected(model, root, kept.node) and is_stacked(model, kept.node)
    return isinstance(root, cst.Call) and model.qualified(root.func) == "torch.stack"


def _is_window(kept: Kept, counters: set[str]) -> bool:
    if kept.sink is not Sink.APPEND or kept.guarded or not (kept.seen.is_row and kept.seen.gathered):
        return False
    if not isinstance(kept.value, cst.Subscript):
        return False
    bounds = (bound for part in slices_of(kept.value) for bound in (part.lower, part.upper) if bound is not None)
    return any(isinstance(node, cst.Name) and node.value in counters for bound in bounds for node in walk(bound))


def _counters(root: Root) -> Iterator[str]:
    loops = (root,) if isinstance(root, cst.For) else walk(root)
    for loop in loops:
        if isinstance(loop, (cst.For, cst.CompFor)):
            yield from bound_names(loop.target)
