"""Calls of one file that enter functions, and methods of classes, of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.heirs import class_of_receiver
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model
    from torchlint.semantics.project import Project
    from torchlint.semantics.values import Value

_MOST_CLASSES = 6
_DEPTH = 4


class NamesThere:
    """What names of a file are called in another one that defines them."""

    def __init__(self, project: Project, file: str, target: str) -> None:
        self._project = project
        self._file = file
        self._target = target
        self._names: dict[str, str | None] = {}

    def of(self, dotted: str | None) -> str | None:
        """None of what the other file does not define."""
        if dotted is None:
            return None
        if dotted not in self._names:
            place = self._project.resolve(self._file, dotted)
            is_there = place is not None and place.file == self._target
            self._names[dotted] = place.name or None if place is not None and is_there else None
        return self._names[dotted]

    def method(self, owner: str, name: str, depth: int = _DEPTH) -> str:
        """`Base.update` of `Derived` and `update`, where a base in the same file is what defines the method."""
        names = self._project.outline(self._target).names
        definition = names.get(owner)
        if definition is not None and name not in definition.methods and depth:
            found = (self.method(base, name, depth - 1) for base in definition.bases if base in names)
            return next((method for method in found if self._defines(method)), f"{owner}.{name}")
        return f"{owner}.{name}"

    def _defines(self, method: str) -> bool:
        owner, _, name = method.rpartition(".")
        definition = self._project.outline(self._target).names.get(owner)
        return definition is not None and name in definition.methods


def calls_into(model: Model, project: Project, file: str, target: str) -> list[tuple[str, Call]]:
    """Calls of a file's functions, and of methods of its classes, with the name that the function has there."""
    there = NamesThere(project, file, target)
    found = []
    for call in model.calls:
        if call.target is not None:
            continue
        name = there.of(call.callee)
        if name is not None and model.value(call.node.func).kind is Kind.MODULE:
            found.append((f"{name}.forward", call))
        elif name is not None:
            found += [(name, call), (f"{name}.__init__", call)]
        else:
            owners = filter(None, map(there.of, _classes_called(model, call)))
            found += [(there.method(owner, call.method or "__call__"), call) for owner in owners]
    return found


def _classes_called(model: Model, call: Call) -> Sequence[str | None]:
    """The classes of the object whose method a call runs, or that is called itself."""
    if call.method is None:
        value = model.value(call.node.func)
        return classes_of(model, value) if value.kind is Kind.INSTANCE else ()
    return classes_of(model, call.receiver_value) or (class_of_receiver(model, call),)


def classes_of(model: Model, value: Value) -> Sequence[str]:
    """The classes of which an object may be; none where that is not in sight."""
    if value.ref is not None or value.kind is not Kind.INSTANCE:
        return (value.ref,) if value.ref is not None else ()
    if len(value.origins) > _MOST_CLASSES:
        return ()
    made = [model.call(node).callee if isinstance(node, cst.Call) else None for node in value.origins]
    return sorted({name for name in made if name is not None})
