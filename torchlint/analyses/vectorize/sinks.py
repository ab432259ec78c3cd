"""Tensors that a loop fills element by element: no iteration may see what another one wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import stored
from torchlint.analyses.vectorize.indexing import Access
from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.analyses.vectorize.shapes import ATOM, Lifted, RefusedError
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

_LOOPS = (cst.For, cst.While)
_LINK = re.compile(r"\.\w+|\[[^\]]*\]")
_PLACE = re.compile(r"[A-Za-z_]\w*(?:\.\w+|\[[\"'][^\"']*[\"']\])+")


def find_sinks(lifter: Lifter, root: cst.For) -> None:
    """Notes what the loop assigns elements of. Refuses what is not known to be a tensor from outside the loop."""
    lifter.indices = stored.indices_of(lifter.model, root)
    for node in _assigned_elements(lifter, root):
        name, facts = lifter.code(node), lifter.tensors.of(node, lifter.place)
        held = {part.value for part in walk(node) if isinstance(part, cst.Name)}
        if not facts.tensor or held & lifter.written:
            raise RefusedError(f"`{name}` is not known to be a tensor from outside the loop")
        if not isinstance(node, cst.Name):
            for other in stored.other_names(lifter.model, root, name):
                raise RefusedError(f"`{other}` may be a part of `{name}`, which the loop fills, or hold it")
        lifter.sinks[name] = Lifted(name, ATOM, (), facts.rank, facts.dtype, tensor=True, shares=True, shape=facts)
        lifter.sink_names.setdefault(name, node)


def _assigned_elements(lifter: Lifter, root: cst.For) -> Iterable[cst.BaseExpression]:
    for node in walk(root):
        target: cst.BaseExpression | None = None
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)):
            target = node.target
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "index_add_":
            target = node.func.value
        if isinstance(target, cst.Subscript):
            base, _ = stored.filled(target, lifter.indices)
            if not stored.is_stored(base):
                raise RefusedError("the loop fills something that is not a variable")
            yield base


def check_accesses(accesses: list[Access]) -> None:
    """Every use of a tensor that the loop fills must be at the same place for the same loops."""
    for access in accesses:
        others = [other for other in accesses if other.name == access.name and other is not access]
        for axis in access.context:
            here = access.dims.get(axis)
            if here is None and not access.summed:
                raise RefusedError(f"an iteration reads what another wrote to `{access.name}`")
            if any(axis in other.context and other.dims.get(axis) != here for other in others):
                raise RefusedError(f"an iteration uses what another wrote to `{access.name}`")
            if here is None and any(axis in other.context for other in others):
                raise RefusedError(f"`{access.name}` is used while it is summed up")


def check_memory(lifter: Lifter, reaching: Reaching) -> None:
    """A tensor that is filled must not be the memory of one that is read, under another name."""
    for name, node in lifter.sink_names.items():
        others = (set(lifter.bases) | lifter.others | set(lifter.sinks)) - {name}
        if is_fresh(lifter, reaching, node):
            others = {other for other in others if not isinstance(node, cst.Name) and _may_lead_to(lifter, name, other)}
        if others:
            lifter.doubt(f"`{name}` may share memory with what the loop reads")
    for total in lifter.added_in_place:
        if not is_fresh(lifter, reaching, total):
            lifter.doubt(f"`{total.value}` may share memory with what is added to it")


def _may_lead_to(lifter: Lifter, name: str, other: str) -> bool:
    """Whether an expression may be what is kept under a name, although nothing else has been put there since."""
    computed = (node for node in lifter.read if lifter.code(node) in other and stored.is_computed(lifter.model, node))
    places = (place[: link.end()] for place in _PLACE.findall(other) for link in _LINK.finditer(place))
    return any(stored.names_alike(name, place) for place in places) or any(computed)


def is_fresh(lifter: Lifter, reaching: Reaching, name: cst.BaseExpression) -> bool:
    """Whether the tensor was made in this function, and nothing else can refer to its memory when the loop begins."""
    model = lifter.model
    if isinstance(name, cst.Attribute) and name.attr.value == "data":
        return is_fresh(lifter, reaching, name.value)
    if not lifter.tensors.of(name, lifter.place).fresh:
        return False
    if not isinstance(name, cst.Name):
        made, held = stored.made_before(model, name, lifter.place), lifter.code(name)
        if made is None or any(name for statement in made.since for name in stored.other_names(model, statement, held)):
            return False
        uses = (use for statement in made.since for use in stored.mentions(statement, held))
        return all(_is_harmless(lifter, use) for use in uses)
    binding = model.binding(name)
    write = reaching.reaching(binding, lifter.place) if binding is not None else None
    if binding is None or write is None or binding.shared or write.kind != "assign" or write.unpacked:
        return False
    if model.function(lifter.place) is not write.function:
        return False
    around, outside = _loops_around(lifter, lifter.place), _loops_around(lifter, write.statement)
    if around[len(around) - len(outside) :] != outside:
        return False
    start, end = reaching.order(write.target), reaching.order(lifter.place)
    if len(around) > len(outside):  # what comes behind the loop comes before it, too, in another round
        end = reaching.end(around[len(around) - len(outside) - 1])
    between = [read for read in binding.reads if model.function(read) is write.function]
    return all(
        _is_harmless(lifter, read)
        for read in between
        if start < reaching.order(read) <= end and lifter.place not in model.ancestors(read)
    )


def _loops_around(lifter: Lifter, node: cst.CSTNode) -> list[cst.CSTNode]:
    return [ancestor for ancestor in lifter.model.ancestors(node) if isinstance(ancestor, _LOOPS)]


def _is_harmless(lifter: Lifter, read: cst.CSTNode) -> bool:
    """Whether a use of a tensor leaves no second name for its memory: its shape, or an assignment to elements."""
    parent = lifter.model.parent(read)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in ("shape", "size", "dtype", "device", "ndim", "dim", "fill_", "zero_")
    if isinstance(parent, cst.Subscript) and parent.value is read:
        above = lifter.model.parent(parent)
        return isinstance(above, (cst.AssignTarget, cst.AugAssign))
    call = lifter.model.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and lifter.model.qualified(call.func) == "builtins.len"
