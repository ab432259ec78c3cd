"""The files around one file: what it imports, what imports it, and what is imported beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.semantics.project import Project
    from torchlint.source import Source

MOST_IMPORTERS = 6
_MOST_USERS = 40
_MOST_FILES = 400
_DEFINITION = re.compile(r"def (\w+)\(")


class Nearby:
    """What lies around a file in its project, found by the lines of imports alone."""

    def __init__(self, project: Project, file: str) -> None:
        self.project = project
        self.file = file

    def neighbours(self) -> Iterator[Source]:
        """The files that this one imports something of, those that import this one, and those that import these."""
        contents = self.project.outline(self.file)
        imported = [item.imported for item in contents.names.values() if item.kind == "import"]
        places = [self.project.resolve(self.file, dotted) for dotted in (*imported, *contents.stars)]
        importers = self.importing(self.file)
        files = {place.file for place in places if place is not None} | importers
        for file in sorted(files.union(*map(self.importing, importers)) - {self.file}):
            source = self.project.source(file)
            if source is not None:
                yield source

    def files_beside(self) -> Iterator[Source]:
        """All other files of the project; where there are too many, those of the widest folder around that has fewer:
        what is developed in one repository need not be one program."""
        for file in self._near:
            source = self.project.source(file)
            if source is not None:
                yield source

    @cached_property
    def _near(self) -> Sequence[str]:
        files = self.project.files_beside(self.file)
        near: Sequence[str] = files if len(files) <= _MOST_FILES else ()
        for folder in Path(self.file).parents if not near else ():
            inside = [file for file in files if file.startswith(f"{folder}{os.sep}")]
            if len(inside) > _MOST_FILES:
                break
            near = inside
        return near

    def classes_beside(self, methods: Set[str]) -> Iterator[tuple[Source, str]]:
        """The classes at the top level of those files that define these methods, by their outlines alone."""
        for source in self.files_beside():
            if methods <= self.project.once(source, _functions_named):
                for name in self.project.classes_with(os.path.abspath(source.path), methods):
                    yield source, name

    def companions(self) -> Iterator[Source]:
        """The files that import this one, be it through a package, and what they import beside it: to those they can
        hand what it makes."""
        importers = self.importing(self.file)
        importers = self.if_few(importers.union(*map(self._taking_through, importers)))
        files = importers.union(*map(self._imported, importers)) if len(importers) <= MOST_IMPORTERS else importers
        yield from self._sources(files)

    def if_few(self, files: set[str]) -> set[str]:
        """Of many files that may import this one, those that do: other programs beside have files of the same names."""
        return {file for file in files if self._is_imported_by(file)} if len(files) > MOST_IMPORTERS else files

    def _is_imported_by(self, file: str) -> bool:
        imported = self.project.outline(file).imported
        places = (self.project.resolve(file, dotted) for dotted in imported or ())
        return imported is None or any(place is not None and place.file == self.file for place in places)

    def _taking_through(self, package: str) -> set[str]:
        """The files that get something of this one from a package that imports it."""
        if os.path.basename(package) != "__init__.py" or package == self.file:
            return set()
        return {file for file in self.importing(package) if self.names_of_this(file)}

    def imported_by(self, source: Source) -> Iterator[Source]:
        """The files that a file imports something of, and what its packages get their names from."""
        file = os.path.abspath(source.path)
        files = self._imported(file)
        packages = {each for each in files if os.path.basename(each) == "__init__.py"}
        yield from self._sources(files.union(*map(self._imported, packages)) - {file})

    def names_of_this(self, file: str) -> dict[str, str]:
        """The names at the top level of another file that stand for something of this one, or, with a dot behind them,
        for the file itself; with the names that they have here."""
        contents = self.project.outline(file)
        found: dict[str, str] = {}
        for name, item in contents.names.items():
            place = self.project.resolve(file, item.imported) if item.kind == "import" else None
            if place is not None and place.file == self.file:
                found |= {name: place.name} if place.name else {f"{name}.{own}": own for own in self._own_names()}
        for own in self._own_names() if contents.stars else ():
            if own not in contents.names and any(self._is_mine(file, star, own) for star in contents.stars):
                found[own] = own
        return found

    def _own_names(self) -> list[str]:
        return [name for name, item in self.project.outline(self.file).names.items() if item.kind != "import"]

    def _is_mine(self, file: str, star: str, name: str) -> bool:
        place = self.project.resolve(file, f"{star}.{name}" if star.strip(".") else star + name)
        return place is not None and place.file == self.file

    def _sources(self, files: Set[str]) -> Iterator[Source]:
        sources = map(self.project.source, sorted(files - {self.file}))
        yield from (source for source in sources if source is not None)

    def _imported(self, file: str) -> set[str]:
        """The files that a file imports something of, be it within a function."""
        places = (self.project.resolve(file, dotted) for dotted in self.project.outline(file).imported or ())
        return {place.file for place in places if place is not None}

    @cached_property
    def users(self) -> tuple[Source, ...]:
        """The files that import this one, those that import these, and so on, as far as there are not too many."""
        found = [self.file]
        for file in found:  # it grows while the loop runs
            if len(found) > _MOST_USERS:
                break
            found.extend(sorted(self.importing(file).difference(found)))
        sources = map(self.project.source, found[1:])
        return tuple(source for source in sources if source is not None)

    def importing(self, file: str) -> set[str]:
        """Files whose import lines name a file, or a function or class that is defined in it."""
        defined = [
            name for name, item in self.project.outline(file).names.items() if item.kind in ("function", "class")
        ]
        stem = self.project.module_name(file).rpartition(".")[2]
        return set(self.project.files_importing(file, frozenset([stem, *defined])))


def _functions_named(source: Source) -> frozenset[str]:
    """The names of what a file defines, at its top level or within something else."""
    return frozenset(_DEFINITION.findall(source.text))
