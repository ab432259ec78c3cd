"""The files around a linted one: which file an import means, what a name in it stands for, and who imports it.

Files are read as text, when they are asked for, and only below the root of the project; nothing is imported. What is
said of a file depends on the files alone, never on which was asked for first.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from torchlint.files.project_files import ProjectFiles
from torchlint.semantics import vocabulary as words
from torchlint.semantics.names import canonical
from torchlint.semantics.outline import Definition, Outline, names_used, outline
from torchlint.semantics.values import Kind
from torchlint.source import Source, UnreadableSourceError

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.files.requirement import TorchRequirement
    from torchlint.semantics.model import Model

_MOST_BYTES = 400_000  # a longer file is no module that others import from, but data or generated
_DEPTH = 12
_MOST_ASKED = 500
_IMPORT_LINE = re.compile(rb"^[ \t]*(?:from|import)[ \t][^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_WORD = re.compile(rb"\w+")
_Said = TypeVar("_Said")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name is defined: the file, the name at its top level ("" for the file itself), and the definition."""

    file: str
    name: str = ""
    definition: Definition | None = None


@dataclass(slots=True)
class _Parsed:
    """`model`: made without a look into other files but for the classes that it names; None until it is asked for."""

    source: Source
    tree: cst.Module
    model: Model | None = None


@dataclass
class Project:
    """One for a run, in each process. All paths are absolute.

    `characters_kept`: of how much text the trees and models are kept until others push them out; each character takes
    some 100 bytes.
    """

    characters_kept: int = 4_000_000
    _files: ProjectFiles = field(default_factory=ProjectFiles)
    _sources: dict[str, Source | None] = field(default_factory=dict)
    _outlines: dict[str, Outline] = field(default_factory=dict)
    _parsed: OrderedDict[str, _Parsed] = field(default_factory=OrderedDict)  # by file, what was used last at the end
    _characters: int = 0  # of what is parsed
    _without_model: set[str] = field(default_factory=set)
    _imported_words: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    _modules: dict[tuple[str, str], tuple[str, tuple[str, ...]] | None] = field(default_factory=dict)
    _added_folders: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by file
    _said: dict[tuple[object, Source], object] = field(default_factory=dict)
    looked_at: set[str] = field(default_factory=set)  # the files that something was asked of, until it is emptied
    let_go: int = 0  # characters of files whose trees and models are garbage since somebody last looked
    _shown: Mapping[str, Source] = field(default_factory=dict)  # files that read otherwise than on disk

    def showing(self, sources: Iterable[Source]) -> Project:
        """The project as it would be if some of its files read like this."""
        shown = {**self._shown, **{os.path.abspath(source.path): source for source in sources}}
        return Project(self.characters_kept, self._files, {**shown}, looked_at=self.looked_at, _shown=shown)

    # -- files -------------------------------------------------------------------------------------------------------

    def source(self, file: str) -> Source | None:
        """None where there is no such file, or none that can be read as Python."""
        self.looked_at.add(file)
        if file not in self._sources:
            try:
                readable = os.path.getsize(file) <= _MOST_BYTES
                self._sources[file] = Source.read(Path(file)) if readable else None
            except (OSError, UnreadableSourceError):
                self._sources[file] = None
        return self._sources[file]

    def once(self, source: Source, compute: Callable[[Source], _Said]) -> _Said:
        """What a function says of the text of a file. All files that look into it share one computation."""
        if (compute, source) not in self._said:
            self._said[compute, source] = compute(source)
        return self._said[compute, source]  # type: ignore[return-value]

    def outline(self, file: str) -> Outline:
        self.looked_at.add(file)
        if file not in self._outlines:
            source = self.source(file)
            self._outlines[file] = outline(source.text, file) if source is not None else Outline()
        return self._outlines[file]

    def model(self, file: str) -> Model | None:
        """The model of a file, made without a look into other files but for the classes that it names."""
        from torchlint.parsing import UnparsableError
        from torchlint.semantics.foreign import Imports
        from torchlint.semantics.model import Model

        self.looked_at.add(file)
        source = self.source(file)
        if source is None or file in self._without_model:
            return None
        try:
            parsed = self._parse(source)
            if parsed.model is None:
                parsed.model = Model.build(source, parsed.tree, Imports(self, source, deep=False))
            return parsed.model
        except (UnparsableError, RecursionError):
            self._without_model.add(file)
            return None

    def model_to_lint(self, source: Source) -> Model:
        """The model of a file with all that its project says about it.

        Raises UnparsableError, and RecursionError on code nested beyond any reason.
        """
        from torchlint.semantics.foreign import Imports
        from torchlint.semantics.model import Model

        file = os.path.abspath(source.path)
        on_disk = self.source(file)
        if on_disk is not None and on_disk.data == source.data:
            parsed = self._parsed.get(file)
            if parsed is None or parsed.model is None:
                self._sources[file] = source
            model = self.model(file) if self._stands_alone(file) else None
            if model is not None and not model.asks_for_callers:
                return model
        return Model.build(source, self.tree(source), Imports(self, source))

    def _stands_alone(self, file: str) -> bool:
        """Whether the file imports nothing of its project: what others see of it is all there is to know."""
        contents = self.outline(file)
        imported = [d.imported for d in contents.names.values() if d.kind == "import"]
        return not any(self._module(file, name) for name in [*imported, *contents.stars])

    def tree(self, source: Source) -> cst.Module:
        """Raises UnparsableError."""
        return self._parse(source).tree

    def _parse(self, source: Source) -> _Parsed:
        """Raises UnparsableError."""
        from torchlint.parsing import parse

        file = os.path.abspath(source.path)
        known = self._parsed.get(file)
        if known is not None and known.source.data == source.data:
            self._parsed.move_to_end(file)
            return known
        parsed = _Parsed(source, parse(source))
        self._forget(file)
        self._parsed[file] = parsed
        self._characters += len(source.text)
        while self._characters > self.characters_kept and len(self._parsed) > 1:
            self._forget(next(iter(self._parsed)))
        return parsed

    def _forget(self, file: str) -> None:
        parsed = self._parsed.pop(file, None)
        if parsed is not None:
            self._characters -= len(parsed.source.text)
            self.let_go += len(parsed.source.text)

    def path_below_root(self, file: str) -> str:
        return os.path.relpath(file, self._files.root(file))

    def line_length(self, file: str) -> int | None:
        """What the settings of the project's formatter say."""
        return self._files.line_length(os.path.abspath(file))

    def torch_requirement(self, file: Path) -> TorchRequirement | None:
        """What the project asks for of torch."""
        return self._files.torch_requirement(os.path.abspath(file))

    def module_name(self, file: str) -> str:
        """`pkg.engine` of pkg/engine.py below the root: what its definitions are called elsewhere."""
        return self.path_below_root(file).removesuffix(".py").replace(os.sep, ".").removesuffix(".__init__")

    # -- imports -----------------------------------------------------------------------------------------------------

    def resolve(self, importer: str, dotted: str) -> Place | None:
        """What a dotted name, imported by a file, stands for: through packages, re-exports and star imports."""
        found = self._module(importer, dotted)
        if found is None:
            return None
        file, rest = found
        return self._member(file, rest, set()) if rest else self._put_in_place(file) or Place(file)

    def _put_in_place(self, file: str) -> Place | None:
        """What a package has under the name of one of its modules: `from .net import net` puts a class there."""
        folder, name = os.path.split(file)
        package, stem = os.path.join(folder, "__init__.py"), name.removesuffix(".py")
        if package == file or "__init__.py" not in self._files.names_in(folder) or not self._mentions(package, stem):
            return None
        place = self._member(package, (stem,), set())
        return place if place is not None and place.name else None

    def starred(self, importer: str, module: str, name: str) -> str | None:
        """What a star import of a file of the project brings in under a name that this file itself imports from outside
        of the project: `torch`, of a helper module that imports it.
        """
        asked: set[str] = set()  # files may import everything of one another in circles
        waiting = [(importer, module)]
        while waiting:
            found = self._module(*waiting.pop())
            if found is None or found[1] or found[0] in asked:
                continue
            asked.add(found[0])
            contents = self.outline(found[0])
            definition = contents.names.get(name)
            if definition is None:
                waiting += [(found[0], star) for star in reversed(contents.stars)]
                continue
            is_outside = definition.kind == "import" and self._module(found[0], definition.imported) is None
            if is_outside and not definition.imported.startswith("."):
                return definition.imported
        return None

    def _module(self, importer: str, dotted: str) -> tuple[str, tuple[str, ...]] | None:
        """The file of the longest part of `dotted` that is a module, and the names behind it."""
        if (importer, dotted) not in self._modules:
            self._modules[importer, dotted] = self._find_module(importer, dotted)
        return self._modules[importer, dotted]

    def _find_module(self, importer: str, dotted: str) -> tuple[str, tuple[str, ...]] | None:
        parts = dotted.lstrip(".").split(".")
        level = len(dotted) - len(dotted.lstrip("."))
        if parts == [""]:
            parts = []
        if level:
            folder = os.path.dirname(importer)
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self._below(folder, parts)
        if not parts or parts[0] in ("torch", "builtins"):
            return None
        first = None
        for folder in self._search_folders(importer):
            found = self._below(folder, parts)
            if found is not None and self._may_have(*found):
                return found
            first = first or found
        return first

    def _may_have(self, file: str, names: tuple[str, ...]) -> bool:
        """Whether a module may hold what is asked of it: `nets.layers.Layer` is none of `nets/nets.py`, which defines
        no layers, although it stands beside the importer."""
        if not names or os.path.basename(file) == "__init__.py":
            return True
        if not self._mentions(file, names[0]):
            return False
        contents = self.outline(file)
        return names[0] in contents.names or bool(contents.stars)

    def _search_folders(self, importer: str) -> Iterator[str]:
        root = self._files.root(importer)
        folder = os.path.dirname(importer)
        yield folder
        if importer not in self._added_folders:
            self._added_folders[importer] = tuple(self._find_added_folders(importer))
        for added in self._added_folders[importer]:
            if (added + os.sep).startswith(root + os.sep):
                yield added
        while folder != root and folder.startswith(root + os.sep):
            folder = os.path.dirname(folder)
            yield folder
        yield os.path.join(root, "src")

    def _find_added_folders(self, importer: str) -> Iterator[str]:
        """What a file puts on sys.path, or a file beside it that it imports, as `_init_paths` is."""
        own = self.outline(importer)
        yield from own.search_path
        folder = os.path.dirname(importer)
        beside = self._files.names_in(folder)
        for definition in own.names.values():
            file = os.path.join(folder, f"{definition.imported}.py")
            if f"{definition.imported}.py" in beside and file != importer and self._mentions(file, "sys.path"):
                yield from self.outline(file).search_path

    def _below(self, folder: str, parts: list[str]) -> tuple[str, tuple[str, ...]] | None:
        best = None
        names = self._files.names_in(folder)
        if "__init__.py" in names and not parts:
            return os.path.join(folder, "__init__.py"), ()
        if "__init__.py" in names and parts and f"{parts[0]}.py" not in names and parts[0] not in names:
            return None
        for index, part in enumerate(parts):
            names = self._files.names_in(folder)
            if part in names and "__init__.py" in self._files.names_in(os.path.join(folder, part)):
                best = os.path.join(folder, part, "__init__.py"), tuple(parts[index + 1 :])
            elif f"{part}.py" in names:
                return os.path.join(folder, f"{part}.py"), tuple(parts[index + 1 :])
            elif part not in names:
                break
            folder = os.path.join(folder, part)
        return best

    def _member(self, file: str, names: tuple[str, ...], asked: set[tuple[str, tuple[str, ...]]]) -> Place | None:
        """`names[0]` of a file and what lies behind it; no file is asked twice, wherever others import it from."""
        if (file, names) in asked or len(asked) > _MOST_ASKED:
            return None
        asked.add((file, names))
        first, rest = names[0], names[1:]
        if not self._mentions(file, first):
            return self._submodule(file, names, asked)
        contents = self.outline(file)
        definition = contents.names.get(first)
        if definition is None:
            for star in contents.stars:
                found = self._module(file, star)
                if found is not None and not found[1] and (place := self._member(found[0], names, asked)):
                    return place
            return self._submodule(file, names, asked)
        if definition.kind != "import":
            return Place(file, ".".join(names), definition if not rest else None)
        found = self._module(file, ".".join([definition.imported, *rest]))
        if found is None:
            return None
        return self._member(found[0], found[1], asked) if found[1] else Place(found[0])

    def _mentions(self, file: str, name: str) -> bool:
        """Whether the file can define or hand on the name at all; cheaper than its outline."""
        source = self.source(file)
        return source is not None and (name in source.text or "import *" in source.text)

    def _submodule(self, file: str, names: tuple[str, ...], asked: set[tuple[str, tuple[str, ...]]]) -> Place | None:
        if not file.endswith("__init__.py"):
            return None
        found = self._below(os.path.dirname(file), list(names))
        if found is None or found[0] == file:
            return None
        return self._member(found[0], found[1], asked) if found[1] else Place(found[0])

    # -- classes -----------------------------------------------------------------------------------------------------

    def class_kind(self, importer: str, dotted: str) -> Kind | None:
        """What an object of an imported class is, by the bases of the class in whatever files they are."""
        return next((kind for base in self.bases(importer, dotted) if (kind := words.class_kind(base))), None)

    def classes_with(self, file: str, methods: Set[str]) -> Iterator[str]:
        """The classes at the top level of a file that define these methods themselves."""
        for name, definition in self.outline(file).names.items():
            if definition.kind == "class" and methods <= definition.methods:
                yield name

    def kind_of_own(self, file: str, name: str) -> Kind | None:
        """What an object of a class of the file is."""
        return self.class_kind(file, _own(file, name))

    def bases(self, importer: str, dotted: str, depth: int = _DEPTH) -> Iterator[str]:
        """What an imported class derives from in the end, through whatever files: of what a file of the project defines
        only classes that are known by their name, or have a base that is computed."""
        place = self.resolve(importer, dotted) if depth else None
        if place is None or place.definition is None or place.definition.kind != "class":
            return
        for base in place.definition.bases:
            if not base:
                yield dotted
                continue
            name = self.qualified(place.file, base)
            here = _own(place.file, base) if name == base and "." not in base else name
            if words.class_kind(canonical(name)) is not None or self.resolve(place.file, here) is None:
                yield canonical(name)
            else:
                yield from self.bases(place.file, here, depth - 1)

    def qualified(self, file: str, dotted: str) -> str:
        """A dotted name as the file writes it, with the import that its first part is put in its place."""
        first, dot, rest = dotted.partition(".")
        definition = self.outline(file).names.get(first)
        return definition.imported + dot + rest if definition is not None and definition.imported else dotted

    # -- importers ---------------------------------------------------------------------------------------------------

    def is_taken(self, file: str, name: str) -> bool:
        """Whether another file takes a name of the top level of a file, by itself or with all others."""
        handing_on = [file]
        for at in handing_on:  # it grows while the loop runs
            module = self.module_name(at).rpartition(".")[2]
            for other in self.files_importing(at, frozenset({module})):
                contents, source = self.outline(other), self.source(other)
                text = source.text if source is not None else ""
                imported = [definition.imported.split(".")[-2:] for definition in contents.names.values()]
                if [module, name] in imported or f"{module}.{name}" in text:
                    return True
                if any(star.rpartition(".")[2] == module and self._may_be(at, other, star) for star in contents.stars):
                    if source is not None and name not in contents.names and name in self.once(source, _names_used):
                        return True
                    if other not in handing_on:
                        handing_on.append(other)
        return False

    def is_published(self, file: str, name: str) -> bool:
        """Whether the package that a file is in is there for others to install, and hands out a name of it to them."""
        if not self._files.is_installed(file):
            return False
        module = self.module_name(file).rpartition(".")[2]
        for other in self.files_importing(file, frozenset({module})):
            contents = self.outline(other) if os.path.basename(other) == "__init__.py" else Outline()
            handed_out = contents.names.get(name)
            dotted = [handed_out.imported] if handed_out is not None and handed_out.kind == "import" else contents.stars
            if any(place.file == file for each in dotted if (place := self.resolve(other, each)) is not None):
                return True
        return False

    def _may_be(self, file: str, importer: str, dotted: str) -> bool:
        """Whether a file may be what another one imports: what is not found may be any file of the name."""
        found = self._module(importer, dotted)
        return found is None or found[0] == file

    def may_take(self, importer: str, file: str) -> bool:
        """Whether a file imports something, be it within a function, that is defined in another one, or a module, which
        may hand on what is defined there."""
        imported = self.outline(importer).imported
        if imported is None:
            return self.source(importer) is not None
        places = (self.resolve(importer, dotted) for dotted in imported)
        return any(place is not None and (place.file == file or not place.name) for place in places)

    def files_beside(self, file: str) -> tuple[str, ...]:
        """The other Python files of the project; none of a tree too large to be looked through."""
        return tuple(other for other in self._files.files(self._files.root(file)) if other != file)

    def files_importing(self, file: str, words_of: frozenset[str]) -> tuple[str, ...]:
        """Files of the project whose import lines name one of the words; the file itself left out."""
        root = self._files.root(file)
        if root not in self._imported_words:
            self._imported_words[root] = self._index(root)
        index = self._imported_words[root]
        found = {other for word in words_of for other in index.get(word, ())}
        return tuple(sorted(found - {file}))

    def _index(self, root: str) -> dict[str, tuple[str, ...]]:
        """Files by the words of their import lines."""
        index: dict[str, list[str]] = {}
        for file in self._files.files(root):
            try:
                with open(file, "rb") as stream:
                    data = stream.read(_MOST_BYTES)
            except OSError:
                continue
            lines = b" ".join(_IMPORT_LINE.findall(data))
            for word in set(_WORD.findall(lines)):
                index.setdefault(word.decode("ascii", "replace"), []).append(file)
        return {word: tuple(files) for word, files in index.items()}


def _own(file: str, name: str) -> str:
    """A name of a file as the file itself would import it."""
    return "." + os.path.basename(file).removesuffix(".py") + "." + name


def _names_used(source: Source) -> set[str]:
    return names_used(source.text)
