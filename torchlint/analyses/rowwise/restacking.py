"""Loops that take a tensor apart row by row, only for the rows to become one tensor again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.collecting import collector, follows_stack
from torchlint.semantics.numbering import Numbering
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.certainty import Certainty
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_LENGTH = "builtins.len"


def taken_apart(model: Model, certainty: Certainty, loop: cst.For) -> bool:
    """Whether each iteration appends its row to a list, or to one of several, and does nothing else with it, and each
    such list has no other use than to become a tensor, once or whenever it is long enough."""
    rows = model.binding(loop.target) if isinstance(loop.target, cst.Name) else None
    if rows is None or rows.shared:
        return False
    numbering = model.once(Numbering)
    start, end = numbering.first[loop], numbering.last[loop]
    walked = [read for read in rows.reads if start < numbering.first[read] <= end]
    if not walked or not all(_is_put_back(model, loop, read) for read in walked):
        return False
    return certainty.is_tensor(loop.iter, loop) or (_is_moved(model, certainty, loop) and _are_tensors(model, walked))


def _is_moved(model: Model, certainty: Certainty, loop: cst.For) -> bool:
    """Whether what is no tensor that an assignment has made is a part of a batch on which code calls `.to(device)`:
    nothing else that has the method consists of tensors that can be stacked."""
    binding = model.binding(loop.iter)
    if binding is None or model.value(loop.iter).kind is not Kind.TENSOR or "to" not in binding.methods:
        return False
    return certainty.is_assigned_tensors(loop.iter)


def _are_tensors(model: Model, walked: Sequence[cst.CSTNode]) -> bool:
    """Whether torch.stack gets the rows, which takes nothing but tensors."""
    lists = (_list_of(model, read) for read in walked)
    reads = [read for held in lists if held is not None for read in held.reads]
    found = (_collector(model, read) for read in reads)
    return all(model.qualified(call.func) == "torch.stack" for call in found if call is not None)


def _is_put_back(model: Model, loop: cst.For, read: cst.CSTNode) -> bool:
    held = _list_of(model, read)
    if held is None or held.shared or not _is_asked_for_length_alone(model, loop, read, held):
        return False
    uses = [_use(model, use) for use in held.reads if not follows_stack(model, held, use)]
    return "stacked" in uses and None not in uses


def _list_of(model: Model, read: cst.CSTNode) -> Binding | None:
    """`rows` of `rows.append(row)` and of `rows[k].append(row)`."""
    argument = model.parent(read)
    match model.parent(argument) if isinstance(argument, cst.Arg) else None:
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name("append")), args=[_]):
            part = receiver.value if isinstance(receiver, cst.Subscript) else receiver
            return model.binding(part) if isinstance(part, cst.Name) else None
    return None


def _is_asked_for_length_alone(model: Model, loop: cst.For, read: cst.CSTNode, held: Binding) -> bool:
    """Whether every iteration appends its row, or whatever is asked before is how long the list is."""
    tests = [guard.test for guard in model.guards(read, inside=model.loop_of(loop)) if guard.test is not None]
    names = [node for test in tests for node in walk(test) if isinstance(node, cst.Name)]
    return all(node in held.reads or node.value == "len" for node in names)


def _use(model: Model, read: cst.CSTNode) -> str | None:
    """Of a list, or of one in a list of them: whether it grows, is asked for its length, or becomes a tensor."""
    parent = model.parent(_list(model, read))
    match parent:
        case cst.Attribute(attr=cst.Name("append")):
            return "grown"
        case cst.Arg():
            call = model.parent(parent)
            if isinstance(call, cst.Call) and model.qualified(call.func) == _LENGTH:
                return "asked"
    return "stacked" if _collector(model, read) is not None else None


def _collector(model: Model, read: cst.CSTNode) -> cst.Call | None:
    node = _list(model, read)
    return collector(model, node) if isinstance(node, cst.BaseExpression) else None


def _list(model: Model, read: cst.CSTNode) -> cst.CSTNode:
    """`rows`, or `rows[k]` where there are several lists."""
    parent = model.parent(read)
    if isinstance(parent, cst.Subscript) and parent.value is read and not isinstance(parent.slice[0].slice, cst.Slice):
        return parent
    return read
