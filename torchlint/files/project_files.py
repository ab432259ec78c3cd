"""Where a file's project begins, and which Python files are in it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from torchlint.config import DEFAULT_EXCLUDE
from torchlint.files.line_length import SETTINGS, configured
from torchlint.files.requirement import TorchRequirement, is_statement, torch_installed, torch_requirement

_REPOSITORY = (".git", ".hg")
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "torchlint.toml")
_BUILT = re.compile(r"^\s*\[(project|build-system|tool\.poetry)\]", re.M)
_TOP = re.compile(r"(?i)(licen[cs]e|readme|requirements|environment)(\.(txt|md|rst|ya?ml))?")
_NEAR = 4
_SETTINGS = frozenset(name.rpartition("/")[2] for name in SETTINGS)
_MOST_FILES = 4_000
_Said = TypeVar("_Said")


class ProjectFiles:
    """Folders as they were when first asked for. All paths are absolute."""

    def __init__(self) -> None:
        self._listings: dict[str, frozenset[str]] = {}
        self._roots: dict[str, str] = {}
        self._known_files: dict[str, tuple[str, ...]] = {}
        self._fingerprints: dict[str, bytes] = {}
        self._are_installed: dict[str, bool] = {}
        self._line_lengths: dict[str, int | None] = {}
        self._torch_requirements: dict[str, TorchRequirement | None] = {}
        self._torch_installed: dict[str, TorchRequirement | None] = {}

    def root(self, file: str) -> str:
        """The folder of the repository that the file is in; without one, of the nearest project file. Without that, as
        in a repository that was downloaded without its history, a folder with a README or its like: the outermost from
        the working directory on, or else that; where the file lies elsewhere the nearest, or else its own."""
        folder = os.path.dirname(file)
        if folder not in self._roots:
            self._roots[folder] = self._find_root(folder)
        return self._roots[folder]

    def _find_root(self, folder: str) -> str:
        above = [folder, *map(str, Path(folder).parents)]
        for markers in (_REPOSITORY, _PROJECT):
            for candidate in above[:-1]:
                if not self.names_in(candidate).isdisjoint(markers):
                    return candidate
        here = os.getcwd()
        if here in above[:-1]:
            inside = above[above.index(here) :: -1]
            return next((place for place in inside if self._introduces_itself(place)), here)
        return next((place for place in above[:_NEAR] if self._introduces_itself(place)), folder)

    def _introduces_itself(self, folder: str) -> bool:
        return any(map(_TOP.fullmatch, self.names_in(folder)))

    def is_installed(self, file: str) -> bool:
        """Whether the project of a file is made to be installed."""
        root = self.root(file)
        if root not in self._are_installed:
            self._are_installed[root] = "setup.py" in self.names_in(root) or self._is_built(root)
        return self._are_installed[root]

    def _is_built(self, root: str) -> bool:
        if "pyproject.toml" not in self.names_in(root):
            return False
        try:
            settings = Path(root, "pyproject.toml").read_text("utf-8", "replace")
        except OSError:
            return False
        return _BUILT.search(settings) is not None

    def line_length(self, file: str) -> int | None:
        """What the nearest settings of a formatter say between the file and the root of its project."""
        return self._nearest(file, configured, self._line_lengths)

    def torch_requirement(self, file: str) -> TorchRequirement | None:
        """What the nearest list of dependencies says between the file and the root of its project; without one, what
        installs the project."""
        near = self._nearest(file, torch_requirement, self._torch_requirements)
        return near or self._installed(self.root(file))

    def _installed(self, root: str) -> TorchRequirement | None:
        if root not in self._torch_installed:
            self._torch_installed[root] = torch_installed(Path(root), self._known(root))
        return self._torch_installed[root]

    def _nearest(self, file: str, read: Callable[[Path], _Said | None], known: dict[str, _Said | None]) -> _Said | None:
        """What the first folder says that says anything, from the file's own up to the root of its project."""
        folder, root = os.path.dirname(file), self.root(file)
        while True:
            if folder not in known:
                known[folder] = read(Path(folder))
            if known[folder] is not None or folder == root:
                return known[folder]
            folder = os.path.dirname(folder)

    def names_in(self, folder: str) -> frozenset[str]:
        """Names of the files and folders in a folder; none where it cannot be read."""
        if folder not in self._listings:
            try:
                self._listings[folder] = frozenset(os.listdir(folder))
            except OSError:
                self._listings[folder] = frozenset()
        return self._listings[folder]

    def files(self, root: str) -> tuple[str, ...]:
        """Python files below a root, in the order of their paths; none of a tree too large to be looked through."""
        return tuple(file for file in self._known(root) if file.endswith(".py"))

    def _known(self, root: str) -> tuple[str, ...]:
        """Likewise, with the files that say something of the project."""
        if root not in self._known_files:
            found, programs = [], 0
            for file in _walk(root):
                found.append(file)
                programs += file.endswith(".py")
                if programs > _MOST_FILES:
                    found.clear()
                    break
            self._known_files[root] = tuple(sorted(found))
        return self._known_files[root]

    def fingerprint(self, file: str) -> bytes:
        """Of the names, sizes and times of the files of the file's project, with those that say how long its lines are
        and what torch it runs with: it changes when any of them does."""
        root = self.root(file)
        if root not in self._fingerprints:
            digest = hashlib.blake2b(digest_size=16)
            for other in self._known(root):
                try:
                    status = os.stat(other)
                except OSError:
                    continue
                digest.update(f"{other}\0{status.st_size}\0{status.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
            self._fingerprints[root] = digest.digest()
        return self._fingerprints[root]


def _walk(root: str) -> Iterator[str]:
    stack = [root]
    while stack:
        folder = stack.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in DEFAULT_EXCLUDE and not entry.name.startswith("."):
                    stack.append(entry.path)
            elif _counts(entry.name) and os.path.isfile(entry.path):
                yield entry.path


def _counts(name: str) -> bool:
    return name.endswith(".py") or name in _SETTINGS or is_statement(name)
