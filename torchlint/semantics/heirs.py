"""Calls of methods that a class of one file has from a base of another: `self.score(x)`, `super().score(x)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import is_name

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class
    from torchlint.semantics.model import Model
    from torchlint.semantics.project import Project

_DEPTH = 4  # files between a class and a base


def calls_of_heirs(model: Model, project: Project, file: str, target: str) -> Iterator[tuple[str, Call]]:
    """The calls of a file that enter methods of classes of the target, with the names that these have there."""
    for call in model.calls:
        if call.target is not None or call.method is None or call.receiver is None:
            continue
        for base in _bases_asked(model, call):
            for owner in _in_target(project, file, base, target):
                yield f"{owner}.{call.method}", call


def heirs_in(model: Model, project: Project, file: str, target: str, qualname: str) -> Iterator[Class]:
    """The classes of a file that derive from one of the target."""
    for cls in model.classes:
        bases = (base for base in cls.bases if base is not None)
        if any(qualname in _in_target(project, file, base, target) for base in bases):
            yield cls


def _bases_asked(model: Model, call: Call) -> Iterator[str]:
    """The bases of other files in which a method is looked up."""
    around = next((function for function in call.function.around() if function.cls is not None), None)
    own = around.cls if around is not None else None
    method = call.method or ""
    match call.receiver:
        case cst.Name(value=name) if around is not None and own is not None and around.params[:1] == [name]:
            heir: Class | None = own if own.method(method) is None else None
        case cst.Call(func=func) if is_name(func, "super"):
            heir = own
        case _:
            ref = class_of_receiver(model, call)
            found = next((cls for cls in model.classes if ref is not None and ref in (cls.ref, cls.qualname)), None)
            heir = found if found is not None and found.method(method) is None else None
    for cls in heir.lineage() if heir is not None else ():
        yield from (base for base in cls.bases if base is not None)


def _in_target(project: Project, file: str, base: str, target: str, depth: int = _DEPTH) -> Iterator[str]:
    """The classes of the target that a base is, or derives from, through whatever files."""
    place = project.resolve(file, base) if depth else None
    if place is None or place.definition is None or place.definition.kind != "class":
        return
    if place.file == target and place.name:
        yield place.name
    for further in place.definition.bases:
        if further:
            yield from _in_target(project, place.file, project.qualified(place.file, further), target, depth - 1)


def class_of_receiver(model: Model, call: Call) -> str | None:
    """The class of the object whose method is called, or what else has made the only value of its variable."""
    binding = model.binding(call.receiver) if call.receiver is not None else None
    if call.receiver_value.ref is not None or binding is None or len(binding.writes) != 1:
        return call.receiver_value.ref
    write = binding.writes[0]
    return model.call(write.value).callee if isinstance(write.value, cst.Call) and not write.unpacked else None
