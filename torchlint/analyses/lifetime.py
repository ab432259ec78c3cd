"""How long a variable keeps what is put into it: over which iterations, and whether beyond the function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.counters import asks_for_first
from torchlint.analyses.once import once_for_each
from torchlint.analyses.single_tensor import is_graphless
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Guard, Loop
    from torchlint.semantics.model import Model

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """`loops`: those around the place whose iterations the variable survives, innermost first. `beyond`: it survives
    the call of the function as well.
    """

    loops: tuple[Loop, ...]
    beyond: bool

    def __bool__(self) -> bool:
        return bool(self.loops) or self.beyond


def root(model: Model, holder: cst.CSTNode) -> Binding | None:
    """The variable or attribute of self that an object is reached through: `logs` of `logs["train"][0]`."""
    while True:
        binding = model.binding(holder)
        if binding is not None:
            return binding
        match holder:
            case cst.Subscript() | cst.Attribute():
                holder = holder.value
            case cst.Call(func=cst.Attribute(value=inner)):
                holder = inner
            case _:
                return None


def lifetime(model: Model, binding: Binding, place: cst.CSTNode, *, handed_in: bool = False) -> Lifetime:
    """How long something stays that is added to a variable at a place. With `handed_in`, an object that came in as an
    argument lives on in the caller.
    """
    again = list(resets(model, binding, place))
    loops: list[Loop] = []
    for loop in model.loops_around(place):
        if any(_runs_with(model, reset, place, loop) for reset in again):
            return Lifetime(tuple(loops), beyond=False)
        if not loop.is_comprehension:
            loops.append(loop)
    outer = binding.cls is not None or binding.scope_function is not model.function(place)
    outlives = outer or (handed_in and binding.is_parameter)
    return Lifetime(tuple(loops), outlives and not any(_runs_with(model, reset, place, None) for reset in again))


def is_begun_in_sight(model: Model, attribute: Binding) -> bool:
    """Whether this file makes what an attribute holds, or a base in another file does, when it makes the object, and
    never again: a base out of sight may do so in every step."""
    if attribute.cls is None or attribute.writes or attribute.cls.variable(attribute.name) is not None:
        return True
    for base in (base for cls in attribute.cls.lineage() for base in cls.bases if base):
        behind = model.class_behind(base)
        made = behind[1].attribute(attribute.name) if behind is not None else None
        if behind is not None and made is not None and made.writes:
            return all(reset.function.name == "__init__" for reset in made.writes) and not _is_emptied(behind[0], made)
    return False


def _is_emptied(model: Model, binding: Binding) -> bool:
    return any(within is None for _, within in _all_resets(model, binding))


def of_comprehension(model: Model, node: cst.CSTNode) -> Lifetime:
    """What a comprehension collects survives the iterations of its own loops."""
    assert isinstance(node, _COMPREHENSIONS)
    loop = model.loop_of(node.for_in)
    return Lifetime((loop,) if loop is not None else (), beyond=False)


def resets(model: Model, binding: Binding, place: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Where a variable gets a new value, or its container is emptied."""
    statement = model.statement(place)
    return (node for node, within in _all_resets(model, binding) if within is not statement)


@once_for_each
def _all_resets(model: Model, binding: Binding) -> list[tuple[cst.CSTNode, cst.CSTNode | None]]:
    """Each with the statement that writes the variable, if that is what it is."""
    found: list[tuple[cst.CSTNode, cst.CSTNode | None]] = []
    for write in binding.writes:
        value = write.value
        if write.kind in ("augmented", "parameter"):
            continue
        if value is None or is_graphless(model.value(value)) or not _mentions(model, value, binding):
            found.append((write.target, write.statement))
    for read in binding.reads:
        parent = model.parent(read)
        if isinstance(parent, cst.Attribute) and parent.attr.value == "clear":
            found.append((read, None))
        if isinstance(parent, cst.Subscript) and isinstance(model.parent(parent), cst.Del):
            found.append((read, None))
    return found


def _mentions(model: Model, value: cst.CSTNode, binding: Binding) -> bool:
    return any(model.binding(node) is binding for node in walk(value))


def _runs_with(model: Model, reset: cst.CSTNode, place: cst.CSTNode, loop: Loop | None) -> bool:
    """Whether a reset runs whenever a place does, once per iteration of a loop, or per call of the function."""
    if model.function(reset) is not model.function(place):
        return False
    if loop is not None and loop not in model.loops_around(reset):
        return False
    here = {(guard.node, guard.branch) for guard in model.guards(place, inside=loop)}
    return all(
        (guard.node, guard.branch) in here or _is_in_first_iteration(model, guard, loop)
        for guard in model.guards(reset, inside=loop)
    )


def _is_in_first_iteration(model: Model, guard: Guard, outer: Loop | None) -> bool:
    """`if i == 0:` in a loop that counts from 0, which each iteration of the outer one runs through."""
    around = [loop for loop in model.loops_around(guard.node) if loop is not outer]
    return guard.branch == "body" and guard.test is not None and asks_for_first(model, guard.test, around)
