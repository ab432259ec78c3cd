"""Tensors that an object keeps and a method of it makes longer with torch.cat, once for each iteration of a loop or for
each batch that a framework hands it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.steps import is_gated
from torchlint.analyses.mem.cat_growth import (
    CAT,
    Growth,
    copied,
    elements_of,
    is_of_dict,
    is_of_layers,
    is_short,
    is_watch,
)
from torchlint.semantics.entities import Function
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Loop
    from torchlint.semantics.model import Model


def attribute_growths(model: Model) -> Iterator[Growth]:
    """Those that nothing which runs in a round works with, or begins anew."""
    for call in model.calls:
        if call.function.cls is not None and call.callee is not None and CAT.fullmatch(call.callee):
            target = _own_attribute(model, call)
            growth = _growth(model, call, target) if target is not None else None
            if growth is not None:
                yield growth


def _own_attribute(model: Model, call: Call) -> cst.Attribute | None:
    match model.parent(call.node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value=owner)) as target)]):
            return target if call.function.own_name == owner else None
    return None


def _growth(model: Model, call: Call, target: cst.Attribute) -> Growth | None:
    binding, elements = model.binding(target), elements_of(call.node)
    ends = (elements[0], elements[-1]) if elements else ()
    grown = [copied(element) for element in ends if copied(element).deep_equals(target)]
    if binding is None or len(elements) < 2 or len(grown) != 1:
        return None
    parts = tuple(element for element in elements if copied(element) is not grown[0])
    for around in _rounds(model, call):
        run = _run_by(around) | ({call.function} if call.loop is None else set())
        reads = [read for read in binding.reads if read is not grown[0] and _runs(model, read, around, run)]
        begins = any(write.target is not target and _runs(model, write.target, around, run) for write in binding.writes)
        if (
            begins
            or not all(is_watch(model, read) for read in reads)
            or _is_read_elsewhere(around, target, binding.reads)
        ):
            continue
        hook, loops = (around, ()) if isinstance(around, Function) else (None, (around,))
        return Growth(
            call.node,
            f"{call.function.own_name}.{binding.name}",
            parts,
            grown[0] is copied(elements[0]),
            loops,
            binding,
            bool(reads),
            hook,
        )
    return None


def _rounds(model: Model, call: Call) -> Iterator[Loop | Function]:
    """The loops around the call, or its method, where a framework calls that for each batch."""
    if is_gated(model, call.node, call.loop):
        return
    yield from _loops(model, call)
    hook = call.function.hook
    if call.loop is None and hook is not None and hook.batch is not None:
        yield call.function


def _loops(model: Model, call: Call) -> Iterator[Loop]:
    """The loop around the call, or those of this file that call its method in each iteration."""
    sites = [call] if call.loop is not None else call.function.callers
    for site in sites:
        loop = site.loop
        if (
            loop is None
            or loop.is_comprehension
            or not isinstance(loop.node, cst.For)
            or is_gated(model, site.node, loop)
        ):
            continue
        if not is_short(model, (loop,)) and not is_of_dict(loop) and not is_of_layers(loop):
            yield loop


def _run_by(around: Loop | Function) -> set[Function]:
    """The functions of this file that a round runs."""
    found: set[Function] = set()
    work = [*around.calls]
    while work:
        call = work.pop()
        for target in (call.target, *call.alternatives):
            if target is not None and target not in found:
                found.add(target)
                work += target.calls
    return found


def _runs(model: Model, node: cst.CSTNode, around: Loop | Function, run: set[Function]) -> bool:
    return model.function(node) in run or around.node in model.ancestors(node)


def _is_read_elsewhere(around: Loop | Function, target: cst.Attribute, known: list[cst.Name | cst.Attribute]) -> bool:
    """Whether the round reads the attribute of an object by another name than `self`, or hands the object on."""
    owner = target.value
    for node in walk(around.node):
        if isinstance(node, cst.Attribute) and node.attr.value == target.attr.value and node not in (*known, target):
            return True
        if isinstance(node, cst.Arg) and isinstance(node.value, cst.Name) and node.value.deep_equals(owner):
            return True
    return False
