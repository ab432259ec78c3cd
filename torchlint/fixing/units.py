"""The fixes of a project one by one: which there are, and what the files become when only some of them are made."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchlint.engine import lint
from torchlint.files.discovery import discover
from torchlint.finding import Finding
from torchlint.finding_lines import FindingLines
from torchlint.fixing.passes import Fixed, applicable, changes, fix_together, located
from torchlint.running.runner import fix_tree
from torchlint.semantics.project import Project
from torchlint.settings_file import Configuration
from torchlint.source import Source

Key = tuple[Path, str, str | None, str]


@dataclass(frozen=True)
class FixUnit:
    """One fix, or several of one rule for equal statements of one function.

    `lines` (1-based) are those of the untouched file whose run shows what the fix does. `paths` are the files that it
    changes, and its own.
    """

    key: Key
    finding: Finding
    lines: frozenset[int]
    paths: frozenset[Path]

    @property
    def path(self) -> Path:
        return self.key[0]


class FixUnits:
    """All fixes of Python files below `paths`, and of these notebooks. Nothing is written.

    Raises ConfigError, and FileNotFoundError for a path that does not exist.
    """

    def __init__(
        self, paths: Sequence[Path], configuration: Configuration, unsafe: bool, notebooks: Collection[Path] = ()
    ) -> None:
        self._unsafe = unsafe
        self._project = Project()
        fixable = {path: file.before for path, file in fix_tree(paths, configuration, unsafe).items()}
        self._files = {
            target.path: (fixable[target.path], replace(target.settings, unsafe_fixes=unsafe))
            for target in discover(paths, configuration).targets
            if target.path in fixable and (target.path.suffix == ".py" or target.path.resolve() in notebooks)
        }
        self.units = [unit for path in self._files for unit in self._of(path)]

    def fixed(self, keys: Collection[Key]) -> dict[Path, Fixed]:
        """The files that these fixes change, with no other fix made but those that they make possible."""
        wanted = frozenset(keys)
        made: dict[Path, Fixed] = {}
        for paths in _groups([unit.paths for unit in self.units if unit.key in wanted]):
            made |= self._fix(paths, wanted)
        return {path: fixed for path, fixed in made.items() if fixed.changed}

    def _fix(self, paths: frozenset[Path], wanted: frozenset[Key]) -> dict[Path, Fixed]:
        unwanted = {unit.key[:3] for unit in self.units if unit.key not in wanted}

        def accept(source: Source, finding: Finding) -> bool:
            key = _key(source, finding)
            return key in wanted or key[:3] not in unwanted

        sources = [self._files[path][0] for path in sorted(paths)]
        settings = {path: self._files[path][1] for path in paths}
        return fix_together(sources, settings, self._project, accept=accept)

    def _of(self, path: Path) -> list[FixUnit]:
        source, settings = self._files[path]
        named = {os.path.abspath(path): path for path in self._files}
        lines_of = FindingLines(source)
        units: dict[Key, FixUnit] = {}
        for finding in lint(source, settings, project=self._project):
            paths = frozenset(changes(located(finding, named))) | {path}
            if applicable(finding, self._unsafe) and paths <= self._files.keys():
                key, lines = _key(source, finding), lines_of.of(finding)
                known = units.get(key)
                units[key] = FixUnit(key, finding, lines | known.lines if known is not None else lines, paths)
        return list(units.values())


def _groups(sets: Iterable[frozenset[Path]]) -> list[frozenset[Path]]:
    """The sets, those that share a path made one."""
    groups: list[frozenset[Path]] = []
    for paths in sets:
        meeting = [group for group in groups if group & paths]
        groups = [group for group in groups if not group & paths] + [paths.union(*meeting)]
    return groups


def _key(source: Source, finding: Finding) -> Key:
    """The same in every pass: the fixes of other statements move a statement but do not change it."""
    return source.path, finding.code, finding.function, " ".join(source.text[finding.start : finding.end].split())
