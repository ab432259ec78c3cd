"""Applying fixes, to one file or to several that must change together: passes until nothing changes, rolled back where
a text no longer parses. Writing is left to the caller.
"""

from __future__ import annotations

import os
import re
import warnings
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.config import Settings
from torchlint.diagnostics import FIX_ROLLED_BACK, diagnose
from torchlint.engine import lint
from torchlint.finding import Applicability, Edit, Finding
from torchlint.source import Source, UnreadableSourceError

if TYPE_CHECKING:
    from torchlint.semantics.project import Project

MAX_PASSES = 20
_IMPORT = re.compile(r"\s*import \w+\s*")

Accept = Callable[[Source, Finding], bool]  # of a finding in a source as it is in that pass


@dataclass(frozen=True)
class Fixed:
    """A source after its fixes: `applied` in the order of application, `remaining` as found in `source`.

    `together`: the files that must be written with this one, or not at all.
    """

    before: Source
    source: Source
    applied: tuple[Finding, ...] = ()
    remaining: tuple[Finding, ...] = ()
    together: frozenset[Path] = frozenset()

    @property
    def changed(self) -> bool:
        return self.source.data != self.before.data

    @property
    def applied_by_code(self) -> Counter[str]:
        return Counter(finding.code for finding in self.applied)


def applicable(finding: Finding, unsafe: bool) -> bool:
    """Whether a finding has a fix that is applied."""
    if finding.fix is None:
        return False
    return finding.fix.applicability is Applicability.SAFE or (
        unsafe and finding.fix.applicability is Applicability.UNSAFE
    )


def changes(finding: Finding) -> dict[Path, tuple[Edit, ...]]:
    """The edits of the fix of a finding by the file that they are made in; empty without a fix."""
    if finding.fix is None:
        return {}
    own = {Path(finding.path): finding.fix.edits} if finding.fix.edits else {}
    return own | {other.source.path: other.edits for other in finding.fix.elsewhere}


def located(finding: Finding, named: Mapping[str, Path]) -> Finding:
    """The finding with the other files of its fix by the paths that they have in `named`, which has them by their
    absolute paths."""
    if finding.fix is None or not finding.fix.elsewhere:
        return finding
    elsewhere = []
    for other in finding.fix.elsewhere:
        path = named.get(os.path.abspath(other.source.path), other.source.path)
        elsewhere.append(replace(other, source=replace(other.source, path=path)))
    return replace(finding, fix=replace(finding.fix, elsewhere=tuple(elsewhere)))


def fix_source(
    source: Source,
    settings: Settings,
    unsafe: bool = False,
    strict: bool = False,
    project: Project | None = None,
    start: Source | None = None,
) -> Fixed:
    """Every applicable fix of this file alone, in passes, from what earlier fixes have made of it at the `start`. Never
    raises for a fix that breaks the text: that of the start comes back with a LINT06 finding that names the rule."""
    rounds = _Rounds(
        [source], [start or source], {source.path: settings}, {source.path} if unsafe else set(), project, strict
    )
    return rounds.run()[source.path]


def fix_together(
    sources: Sequence[Source],
    settings: Mapping[Path, Settings],
    project: Project,
    strict: bool = False,
    accept: Accept = lambda source, finding: True,
    start: Sequence[Source] | None = None,
) -> dict[Path, Fixed]:
    """Every applicable fix of these files that `accept` lets through, those that change several of them included; all
    files, or none. The settings say where unsafe fixes count: where a fix changes several files, in all of them."""
    unsafe = {source.path for source in sources if settings[source.path].unsafe_fixes}
    fixed = _Rounds(sources, start or sources, settings, unsafe, project, strict, accept).run()
    together = frozenset(path for path, file in fixed.items() if file.changed)
    return {path: replace(file, together=together - {path}) for path, file in fixed.items()}


class _RollBackError(Exception):
    """The fixes of these findings cannot stay."""

    def __init__(self, guilty: Sequence[Finding], what: str) -> None:
        super().__init__(what)
        self.guilty = guilty
        self.what = what


@dataclass
class _Rounds:
    """Passes over files of which either all change or none."""

    before: Sequence[Source]
    start: Sequence[Source]
    settings: Mapping[Path, Settings]
    unsafe: set[Path]
    project: Project | None
    strict: bool = False
    accept: Accept = lambda source, finding: True
    applied: list[Finding] = field(default_factory=list)

    def run(self) -> dict[Path, Fixed]:
        try:
            after, found = self._rounds()
            broken = [f for findings in found.values() for f in findings if f.code == "LINT01"]
            if self.applied and broken:
                raise _RollBackError(self.applied, "leaves text that does not parse")
        except _RollBackError as error:
            return self._as_it_was(error)
        applied: dict[Path, list[Finding]] = defaultdict(list)
        for finding in self.applied:
            applied[next(iter(changes(finding)))].append(finding)
        return {
            before.path: Fixed(before, source, tuple(applied[before.path]), tuple(found[before.path]))
            for before, source in zip(self.before, after)
        }

    def _rounds(self) -> tuple[list[Source], dict[Path, list[Finding]]]:
        sources, seen = list(self.start), {tuple(source.text for source in self.start)}
        for _ in range(MAX_PASSES):
            found = self._lint(sources)
            chosen = choose([f for source in sources for f in found[source.path] if self._applies(source, f)])
            if not chosen:
                break
            sources = self._applied(sources, chosen)
            texts = tuple(source.text for source in sources)
            if texts in seen:
                raise _RollBackError(chosen, "turns in a circle")
            seen.add(texts)
            self.applied += chosen
        else:
            found = self._lint(sources)
        if not any(source.data != before.data for before, source in zip(self.before, sources)):
            return sources, found
        cleaned = self._tidied(sources)
        return cleaned, found if cleaned == sources else self._lint(cleaned)

    def _lint(self, sources: Sequence[Source]) -> dict[Path, list[Finding]]:
        project, named = self._project(sources), {os.path.abspath(source.path): source.path for source in sources}
        return {
            source.path: [located(f, named) for f in lint(source, self.settings[source.path], self.strict, project)]
            for source in sources
        }

    def _project(self, sources: Sequence[Source]) -> Project | None:
        """Each of several files sees the others as they are by now."""
        return self.project if self.project is None or len(sources) == 1 else self.project.showing(sources)

    def _applies(self, source: Source, finding: Finding) -> bool:
        files = changes(finding).keys()
        if not files <= self.settings.keys():
            return False
        return applicable(finding, files <= self.unsafe) and self.accept(source, finding)

    def _applied(self, sources: Sequence[Source], chosen: Sequence[Finding]) -> list[Source]:
        """Raises _RollBackError where a file can no longer be written, or no longer compiles."""
        try:
            after = apply_fixes(sources, chosen)
        except (UnicodeEncodeError, UnreadableSourceError, ValueError) as error:
            raise _RollBackError(chosen, f"cannot be written: {error}") from error
        if not self._compile(after):
            guilty = [f for f in chosen if not self._compile(apply_fixes(sources, [f]))]
            raise _RollBackError(guilty or chosen, "leaves text that is not valid Python")
        return after

    def _compile(self, after: Sequence[Source]) -> bool:
        return all(does_compile(source) or not does_compile(before) for before, source in zip(self.before, after))

    def _tidied(self, sources: Sequence[Source]) -> list[Source]:
        """Without imports that nothing needs any more, with comments in line with others where they were, and with
        lines broken that have become too long."""
        from torchlint.edits.line_breaking import within_length
        from torchlint.fixing.comment_columns import realigned
        from torchlint.fixing.unused_import import without_unused

        project = self._project(sources)
        cleaned = [without_unused(before, source, project) for before, source in zip(self.before, sources)]
        aligned = [realigned(before, source) for before, source in zip(self.before, cleaned)]
        return [within_length(before, source, project) for before, source in zip(self.before, aligned)]

    def _as_it_was(self, error: _RollBackError) -> dict[Path, Fixed]:
        rules = ", ".join(sorted({f"{finding.code} ({finding.name})" for finding in error.guilty}))
        files = "the file is as it was" if len(self.before) == 1 else "its files are as they were"
        message = f"the fix of {rules} {error.what}; {files}"
        found, guilty = self._lint(self.start), {Path(finding.path) for finding in error.guilty}
        return {
            source.path: Fixed(
                before,
                source,
                remaining=(
                    *([diagnose(FIX_ROLLED_BACK, message, source.path)] if source.path in guilty else []),
                    *found[source.path],
                ),
            )
            for before, source in zip(self.before, self.start)
        }


def choose(findings: Sequence[Finding]) -> list[Finding]:
    """Fixes that can be made in one pass: no two touch, and no two of a file share an isolation key. Where some come
    first, only these."""
    first = [finding for finding in findings if finding.fix is not None and finding.fix.comes_first]
    first.sort(key=lambda finding: [(edit.start, -edit.end) for edits in _claims(finding).values() for edit in edits])
    chosen: list[Finding] = []
    taken: dict[Path, list[Edit]] = defaultdict(list)
    isolated: set[tuple[str, str]] = set()
    for finding in first or findings:
        assert finding.fix is not None
        made, key = _claims(finding), finding.fix.isolation
        touches = any(_touch(edit, other) for path, edits in made.items() for edit in edits for other in taken[path])
        if touches or (key is not None and (finding.path, key) in isolated):
            continue
        chosen.append(finding)
        for path, edits in made.items():
            taken[path] += edits
        if key is not None:
            isolated.add((finding.path, key))
    return chosen


def _claims(finding: Finding) -> dict[Path, tuple[Edit, ...]]:
    """The edits of a fix; of one that comes first, all from the first to the last of a file, since what it puts into a
    block may not need the fix of its own any more, and would stand in another place."""
    made = changes(finding)
    if finding.fix is None or not finding.fix.comes_first:
        return made
    spans = {}
    for path, edits in made.items():
        moved = [edit for edit in edits if not _is_import(edit)]
        whole = [Edit(min(e.start for e in moved), max(e.end for e in moved), "")] if moved else []
        spans[path] = (*whole, *(edit for edit in edits if _is_import(edit)))
    return spans


def _touch(a: Edit, b: Edit) -> bool:
    return a.start <= b.end and b.start <= a.end and not (a == b and _is_import(a))


def _is_import(edit: Edit) -> bool:
    """Whether an edit adds an import and nothing else, which is made once however many fixes need it."""
    return edit.start == edit.end and _IMPORT.fullmatch(edit.text) is not None


def apply_fixes(sources: Sequence[Source], findings: Iterable[Finding]) -> list[Source]:
    """The sources with the fixes of these findings, which must not touch each other."""
    edits: dict[Path, list[Edit]] = defaultdict(list)
    for finding in findings:
        for path, made in changes(finding).items():
            edits[path] += [edit for edit in made if not (edit in edits[path] and _is_import(edit))]
    return [source.apply(edits[source.path]) if source.path in edits else source for source in sources]


def does_compile(source: Source) -> bool:
    """Whether Python takes the text, as the code of a notebook's cells where it is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags = PyCF_ALLOW_TOP_LEVEL_AWAIT if source.is_notebook else 0
            compile(source.text, str(source.path), "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
