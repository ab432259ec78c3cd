"""Loops that put what a mask picks of each row behind one another: the mask picks the same of the whole tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.collecting import collector, follows_stack
from torchlint.analyses.rowwise.costly import is_elementwise
from torchlint.analyses.rowwise.state import Sink
from torchlint.semantics.tree import walk
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.state import Kept, Step, Trace
    from torchlint.analyses.rowwise.work import Root
    from torchlint.semantics.model import Model

_JOINING = ("torch.cat", "torch.concat", "torch.concatenate")
# Of each element by itself.
_KEEPING_SHAPE = word_set(
    """
    clamp clamp_min clamp_max clip exp log log1p sqrt rsqrt abs pow square neg reciprocal sigmoid tanh relu mul div add
    sub float double half long int to detach
    """
)


def joins_picks(model: Model, root: Root, trace: Trace) -> bool:
    """Whether every iteration does nothing but keep what a mask picks of its row, for torch.cat to join it all."""
    if trace.faults or trace.tests or not trace.kept:
        return False
    if not all(map(_is_pick, trace.kept)) or not all(map(_keeps_shape, trace.steps)):
        return False
    if any(isinstance(node, cst.Slice) for node in walk(root)):
        return False  # which of the dimensions comes first is another matter then
    if isinstance(root, cst.For):
        return all(_is_joined(model, kept.node) for kept in trace.kept)
    return isinstance(root, cst.Call) and _joins_rows(model, root)


def _is_pick(kept: Kept) -> bool:
    return kept.sink is Sink.APPEND and kept.seen.masked and not kept.guarded


def _keeps_shape(step: Step) -> bool:
    is_pick = step.inputs.masked
    return not is_pick or is_elementwise([step]) or step.name.rpartition(".")[2] in _KEEPING_SHAPE


def _is_joined(model: Model, rows: cst.BaseExpression) -> bool:
    """Whether a list goes into torch.cat, and has no other use."""
    binding = model.binding(rows)
    if binding is None:
        return False
    reads = [read for read in binding.reads if not _is_grown(model, read) and not follows_stack(model, binding, read)]
    made = [call for read in reads if isinstance(read, cst.Name) and (call := collector(model, read)) is not None]
    return bool(made) and len(made) == len(reads) and all(_joins_rows(model, call) for call in made)


def _is_grown(model: Model, read: cst.CSTNode) -> bool:
    """`rows.append(part)`"""
    method = model.parent(read)
    return isinstance(method, cst.Attribute) and method.attr.value == "append"


def _joins_rows(model: Model, node: cst.Call) -> bool:
    call = model.call(node)
    dim = call.argument("dim", 1)
    return call.callee in _JOINING and (not dim.given or dim.value.constant == 0)
