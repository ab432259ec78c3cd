"""Calls of one file that enter functions, and methods of classes, of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.heirs import class_of_receiver
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model
    from torchlint.semantics.project import Project
    from torchlint.semantics.values import Value

_CONTAINERS = (Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.SET)
_MOST_CLASSES = 6
_DEPTH = 4


class Held(NamedTuple):
    """The classes of an object, or of those in a list or a dict, by the names that they have in their file."""

    owners: Sequence[str] = ()
    is_listed: bool = False


class NamesThere:
    """What names of a file are called in another one that defines them."""

    def __init__(self, project: Project, file: str, target: str) -> None:
        self._project = project
        self._file = file
        self._target = target
        self._names: dict[str, str | None] = {}
        self._made: dict[str, Held] = {}

    def of(self, dotted: str | None) -> str | None:
        """None of what the other file does not define."""
        if dotted is None:
            return None
        if dotted not in self._names:
            place = self._project.resolve(self._file, dotted)
            is_there = place is not None and place.file == self._target
            self._names[dotted] = place.name or None if place is not None and is_there else None
        return self._names[dotted]

    def held(self, model: Model, value: Value) -> Held:
        """What a value of the file holds of the classes of the other one."""
        names = (self.of(name) for name in _classes_held(model, value))
        return Held(sorted({name for name in names if name is not None}), value.is_(*_CONTAINERS))

    def made(self, dotted: str | None) -> Held:
        """Of what objects a function of the other file returns: `criterion = get_criterion(options)`."""
        name = self.of(dotted)
        if name is None:
            return Held()
        if name not in self._made:
            self._made[name] = self._find_made(name)
        return self._made[name]

    def _find_made(self, name: str) -> Held:
        definition = self._project.outline(self._target).names.get(name)
        home = self._project.model(self._target) if definition is not None and definition.kind == "function" else None
        maker = next((each for each in home.functions if each.qualname == name), None) if home is not None else None
        if home is None or maker is None:
            return Held()
        value = home.returned(maker, Arguments(open=True), True, bound=False)
        names = {*_classes_held(home, value)}
        own = (cls.qualname for cls in home.classes if names.intersection((cls.ref, cls.qualname)))
        return Held(sorted(own), value.is_(*_CONTAINERS))

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
            method, classes = _called(model, call)
            owners = filter(None, map(there.of, classes))
            found += [(there.method(owner, method), call) for owner in owners]
    return found


def _called(model: Model, call: Call) -> tuple[str, Sequence[str | None]]:
    """The method that a call runs, and the classes of the object: of one that is called itself, `__call__`."""
    function = model.value(call.node.func)
    if function.kind is Kind.INSTANCE:
        return "__call__", classes_of(model, function)
    if call.method is None:
        return "", ()
    return call.method, classes_of(model, call.receiver_value) or (class_of_receiver(model, call),)


def classes_of(model: Model, value: Value) -> Sequence[str]:
    """The classes of which an object may be; none where that is not in sight."""
    if value.ref is not None or value.kind is not Kind.INSTANCE:
        return (value.ref,) if value.ref is not None else ()
    if len(value.origins) > _MOST_CLASSES:
        return ()
    made = [model.call(node).callee if isinstance(node, cst.Call) else None for node in value.origins]
    return sorted({name for name in made if name is not None})


def _classes_held(model: Model, value: Value) -> Iterator[str]:
    """Of an object, or of those in a list or a dict."""
    parts = [value]
    if value.is_(*_CONTAINERS):
        parts = [*(value.items or ()), *(part for _, part in value.known_fields)]
        parts += [value.element] if value.element is not None else []
    for part in parts:
        if part.kind is Kind.INSTANCE:
            yield from classes_of(model, part)
