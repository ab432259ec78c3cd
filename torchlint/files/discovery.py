"""Which files are linted: folders are walked, files that are named are taken as they are.

A walk leaves out what git ignores, what `exclude` names and virtual environments, and does not enter folders behind
symbolic links, so that no loop of links can catch it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.config import Settings, glob_spec
from torchlint.settings_file import Configuration

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIXES = (".py", ".pyi", ".ipynb")


@dataclass(frozen=True, slots=True)
class Target:
    """A file to lint, with its path as it is shown: relative to the working directory where it lies below it. `data` is
    linted in place of the bytes of the file, of which it may be the state that is staged."""

    path: Path
    settings: Settings
    data: bytes | None = None
    is_staged: bool = False


@dataclass
class Discovery:
    """`targets` in the order of their paths. `missing` are paths that do not exist, `problems` folders and special
    files that cannot be read."""

    targets: list[Target] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)
    problems: list[tuple[Path, str]] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def _add(self, path: str, real: str, settings: Settings) -> None:
        if real not in self._seen:
            self._seen.add(real)
            self.targets.append(Target(Path(shown(path)), settings))


def discover(paths: Sequence[Path], configuration: Configuration) -> Discovery:
    """Raises ConfigError."""
    found = Discovery()
    for path in paths:
        if not os.path.lexists(path):
            found.missing.append(path)
            continue
        settings = configuration.for_path(path)
        if settings.force_exclude and is_excluded(path, settings):
            continue
        if path.is_dir():
            _walk(os.path.abspath(path), configuration, found)
        elif path.is_file():
            found._add(os.path.abspath(path), os.path.realpath(path), settings)
        else:
            what = "a symbolic link that leads nowhere" if path.is_symlink() else "not a regular file"
            found.problems.append((path, what))
    found.targets.sort(key=lambda target: target.path.parts)
    return found


def shown(path: str) -> str:
    """A path as findings have it: from the working directory, absolute for what lies elsewhere."""
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith("..") else relative


def is_excluded(path: Path, settings: Settings) -> bool:
    return settings.is_excluded(path, path.is_dir()) or (
        settings.respect_gitignore
        and _Ignores.above(os.path.abspath(path)).covers(os.path.abspath(path), path.is_dir())
    )


@dataclass(frozen=True)
class _Ignores:
    """The .gitignore files in force in a folder, the outermost first."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, path: str) -> _Ignores:
        """Those of the repository's folders above `path`, which itself is not read."""
        folders = []
        folder = os.path.dirname(path)
        while True:
            folders.append(folder)
            if os.path.exists(os.path.join(folder, ".git")):
                break
            if folder == os.path.dirname(folder):
                return cls()
            folder = os.path.dirname(folder)
        ignores = cls()
        for folder in reversed(folders):
            ignores = ignores.within(folder)
        return ignores

    def within(self, folder: str) -> _Ignores:
        specs = self.specs
        for name in (".git/info/exclude", ".gitignore"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    lines = tuple(line for line in file.read().splitlines() if line.strip() and line[0] != "#")
            except OSError:
                continue
            if lines:
                specs = (*specs, (folder, glob_spec(lines)))
        return self if specs == self.specs else _Ignores(specs)

    def covers(self, path: str, is_folder: bool) -> bool:
        for folder, spec in reversed(self.specs):
            name = path[len(folder.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
            verdict = spec.check_file(name + "/" if is_folder else name).include
            if verdict is not None:
                return verdict
        return False


def _walk(root: str, configuration: Configuration, found: Discovery) -> None:
    stack = [(root, os.path.realpath(root), _Ignores.above(root))]
    while stack:
        folder, real, ignores = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            found.problems.append((Path(shown(folder)), error.strerror or str(error)))
            continue
        if folder != root and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        settings = configuration.for_folder(Path(folder))
        if settings.respect_gitignore:
            ignores = ignores.within(folder)
        for entry, is_folder in _relevant(entries):
            if settings.is_excluded(Path(entry.path), is_folder) or ignores.covers(entry.path, is_folder):
                continue
            if is_folder:
                stack.append((entry.path, os.path.join(real, entry.name), ignores))
            else:
                target = os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(real, entry.name)
                found._add(entry.path, target, settings)


def _relevant(entries: Sequence[os.DirEntry[str]]) -> Iterator[tuple[os.DirEntry[str], bool]]:
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield entry, True
        elif entry.name.endswith(SUFFIXES) and os.path.isfile(entry.path):  # entry.is_file() raises for a loop of links
            yield entry, False
