"""Batches that page-locked memory means nothing to: torch pins tensors, containers of them, and what has a method for
it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.collated import collating
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

_DEPTH = 3


def are_left_alone(loader: Loader) -> bool:
    """Whether the collate function returns an object of a class of the project that has no `pin_memory()`, or puts one
    into what it returns, as DETR does with its images, and no tensor beside it; or the batch is of things that `to()`
    moves, as graphs of DGL, and not of tensors, of which it makes copies."""
    if not loader.is_graphs and any(_is_moved_in_place(move.call, loader.model) for move in loader.moves):
        return True
    return any(_returns_own_objects(function, home) for home, function in collating(loader))


def is_collated_out_of_sight(loader: Loader) -> bool:
    """Whether something collates the batches of which no function is in sight, such as an object that is called."""
    collate = loader.option("collate_fn")
    return collate.given and collate.value.kind is not Kind.NONE and not loader.is_graphs and not collating(loader)


def _is_moved_in_place(call: Call, model: Model) -> bool:
    """`graph.to(device)`, as a statement"""
    return isinstance(model.parent(call.node), cst.Expr) and call.receiver_value.kind is not Kind.TENSOR


def _returns_own_objects(function: Function, home: Model) -> bool:
    returned = [node.value for node in function.returns]
    held = [[*_parts(node, home), *_stored(node, home)] if node is not None else [] for node in returned]
    return bool(held) and all(
        any(_is_own_object(part, home) for part in parts) and not any(home.value(p).is_tensor for p in parts)
        for parts in held
    )


def _parts(returned: cst.BaseExpression, home: Model) -> Iterator[cst.BaseExpression]:
    """What a function returns, or each part of a tuple or a dict of that, as it is written where it has a name."""
    held = [returned]
    if isinstance(returned, (cst.Tuple, cst.List, cst.Dict)):
        held = [element.value for element in returned.elements]
    for part in held:
        binding = home.binding(part)
        writes = writes_reaching(home, binding, part) if binding is not None else []
        yield from [write.value for write in writes if write.value is not None and not write.unpacked] or [part]


def _stored(returned: cst.BaseExpression, home: Model) -> Iterator[cst.BaseExpression]:
    """What is put into the parts of a list that a function returns: `batch[0] = padded(batch[0])`."""
    match returned:
        case cst.Call(func=func, args=[arg]) if home.qualified(func) in ("builtins.tuple", "builtins.list"):
            returned = arg.value
    binding = home.binding(returned)
    for read in binding.reads if binding is not None else ():
        part = home.parent(read)
        target = home.parent(part) if isinstance(part, cst.Subscript) and part.value is read else None
        statement = home.parent(target) if isinstance(target, cst.AssignTarget) else None
        if isinstance(statement, cst.Assign):
            yield statement.value


def _is_own_object(node: cst.BaseExpression, home: Model, depth: int = _DEPTH) -> bool:
    """Whether a call makes an object of a class of the project that has no `pin_memory()`, be it in a function."""
    if not isinstance(node, cst.Call) or not depth:
        return False
    call = home.call(node)
    behind = home.class_behind(call.callee) if call.callee is not None else None
    if behind is not None:
        cls = behind[1]
        return set(cls.bases) <= {"builtins.object"} and cls.method("pin_memory") is None
    entered = (home, call.target) if call.target is not None else home.function_behind(home.value(node.func))
    if entered is None:
        return False
    there, function = entered
    return any(_is_own_object(each.value, there, depth - 1) for each in function.returns if each.value is not None)
