"""Which files may call what a file defines although their imports do not name it: others hand it on to them, as a
package does, or under another name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.semantics.project import Project


def importers_naming(project: Project, file: str, names: Set[str]) -> tuple[str, ...]:
    """The files that import a file, or one of its names from wherever, and call something of these names."""
    files = project.files_importing(file, frozenset(names | {_stem(project, file)}))
    return tuple(other for other in files if _calls(project, other, names))


def importers_through_others(project: Project, file: str, names: Set[str]) -> Iterator[str]:
    """Those that get it from a file that hands it on, and call something of these names or of what that file calls it,
    or that call it otherwise themselves."""
    known = set(importers_naming(project, file, names))
    words, renamed = _handed_on(project, file, names)
    for other in project.files_importing(file, words | names) if words else ():
        if other not in known and _calls(project, other, names | renamed):
            yield other


def _handed_on(project: Project, file: str, names: Set[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words by which others import what a file defines from those that hand it on, and its other names there."""
    words: set[str] = set()
    renamed: set[str] = set()
    stem = _stem(project, file)
    for other in project.files_importing(file, frozenset(names | {stem})):
        if os.path.basename(other) == "__init__.py" and _takes_all(project, other, file):
            words.add(_stem(project, other))
        for local, definition in project.outline(other).names.items():
            last = definition.imported.rpartition(".")[2]
            if definition.kind != "import" or last not in (stem, *names):
                continue
            place = project.resolve(other, definition.imported)
            if place is None or place.file != file or (place.name and place.name not in names):
                continue
            if local != last:
                words.add(local)
                renamed.update({local} if place.name else ())
            if os.path.basename(other) == "__init__.py":
                words.add(_stem(project, other))
    return frozenset(words), frozenset(renamed)


def _takes_all(project: Project, package: str, file: str) -> bool:
    """`from .losses import *`"""
    stars = (project.resolve(package, star) for star in project.outline(package).stars)
    return any(place is not None and place.file == file for place in stars)


def _calls(project: Project, file: str, names: Iterable[str]) -> bool:
    source = project.source(file)
    return source is not None and any(f"{name}(" in source.text for name in names)


def _stem(project: Project, file: str) -> str:
    return project.module_name(file).rpartition(".")[2]
