"""Applying fixes to one file: passes until nothing changes, rolled back where the text no longer parses; and writing
the result so that no file is ever half written.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.config import Settings
from torchlint.diagnostics import FIX_ROLLED_BACK
from torchlint.engine import diagnose, lint
from torchlint.finding import Applicability, Edit, Finding
from torchlint.source import Source, UnreadableSourceError

if TYPE_CHECKING:
    from torchlint.semantics.project import Project

MAX_PASSES = 20


@dataclass(frozen=True)
class Fixed:
    """A source after its fixes: `applied` in the order of application, `remaining` as found in `source`."""

    before: Source
    source: Source
    applied: tuple[Finding, ...] = ()
    remaining: tuple[Finding, ...] = ()

    @property
    def changed(self) -> bool:
        return self.source.data != self.before.data

    @property
    def applied_by_code(self) -> Counter[str]:
        return Counter(finding.code for finding in self.applied)


def applicable(finding: Finding, unsafe: bool) -> bool:
    if finding.fix is None:
        return False
    return finding.fix.applicability is Applicability.SAFE or (
        unsafe and finding.fix.applicability is Applicability.UNSAFE
    )


def fix_source(
    source: Source,
    settings: Settings,
    unsafe: bool = False,
    strict: bool = False,
    accept: Callable[[Finding], bool] = lambda finding: True,
    project: Project | None = None,
) -> Fixed:
    """Every applicable fix that `accept` lets through, in passes. Never raises for a fix that breaks the text: the
    original comes back with a LINT06 finding that names the rule."""
    before, compiled = source, does_compile(source)
    applied: list[Finding] = []
    seen = {source.text}
    for _ in range(MAX_PASSES):
        findings = lint(source, settings, strict, project)
        chosen = choose([f for f in findings if applicable(f, unsafe) and accept(f)])
        if not chosen:
            break
        try:
            after = apply_fixes(source, chosen)
        except (UnicodeEncodeError, UnreadableSourceError, ValueError) as error:
            return _rolled_back(before, settings, strict, project, chosen, f"cannot be written: {error}")
        if compiled and not does_compile(after):
            guilty = [f for f in chosen if not does_compile(apply_fixes(source, [f]))] or chosen
            return _rolled_back(before, settings, strict, project, guilty, "leaves text that is not valid Python")
        if after.text in seen:
            return _rolled_back(before, settings, strict, project, chosen, "turns in a circle")
        seen.add(after.text)
        applied += chosen
        source = after
    else:
        findings = lint(source, settings, strict, project)
    if applied:
        from torchlint.unused_import import without_unused

        cleaned = without_unused(before, source, project)
        if cleaned is not source:
            source, findings = cleaned, lint(cleaned, settings, strict, project)
    if any(f.code == "LINT01" for f in findings) and applied:
        return _rolled_back(before, settings, strict, project, applied, "leaves text that does not parse")
    return Fixed(before, source, tuple(applied), tuple(findings))


def _rolled_back(
    before: Source, settings: Settings, strict: bool, project: Project | None, guilty: Sequence[Finding], what: str
) -> Fixed:
    rules = ", ".join(sorted({f"{finding.code} ({finding.name})" for finding in guilty}))
    message = f"the fix of {rules} {what}; the file is as it was"
    remaining = [diagnose(FIX_ROLLED_BACK, message, before.path), *lint(before, settings, strict, project)]
    return Fixed(before, before, (), tuple(remaining))


def choose(findings: Sequence[Finding]) -> list[Finding]:
    """Fixes that can be made in one pass: no two touch, and no two share an isolation key."""
    chosen: list[Finding] = []
    taken: list[Edit] = []
    isolated: set[str] = set()
    for finding in findings:
        fix = finding.fix
        assert fix is not None
        if fix.isolation in isolated or any(_touch(edit, other) for edit in fix.edits for other in taken):
            continue
        chosen.append(finding)
        taken += fix.edits
        if fix.isolation is not None:
            isolated.add(fix.isolation)
    return chosen


def _touch(a: Edit, b: Edit) -> bool:
    return a.start <= b.end and b.start <= a.end


def apply_fixes(source: Source, findings: Sequence[Finding]) -> Source:
    return source.apply([edit for finding in findings if finding.fix is not None for edit in finding.fix.edits])


def does_compile(source: Source) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags = PyCF_ALLOW_TOP_LEVEL_AWAIT if source.is_notebook else 0
            compile(source.text, str(source.path), "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


class WriteError(Exception):
    """A fixed file could not be written. The file is as it was."""


def write(fixed: Fixed) -> None:
    """Put the fixed bytes in the place of the old ones, at once or not at all; a symbolic link keeps pointing where it
    pointed. Raises WriteError, also where the file changed since it was read or is read-only."""
    target = Path(os.path.realpath(fixed.before.path))
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
        if not mode & 0o222:
            raise WriteError("the file is read-only")
        if target.read_bytes() != fixed.before.data:
            raise WriteError("the file changed while it was being fixed")
        _replace(target, fixed.source.data, mode)
    except OSError as error:
        raise WriteError(error.strerror or str(error)) from error


def _replace(target: Path, data: bytes, mode: int) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
