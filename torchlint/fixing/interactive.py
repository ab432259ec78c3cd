"""Fixes one by one, each shown with its change and made if the answer is yes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from torchlint.engine import examine
from torchlint.filters.scope import Key, key_of
from torchlint.finding import Finding
from torchlint.fixing.passes import Fixed, applicable, apply_fixes, does_compile
from torchlint.fixing.unused_import import without_unused
from torchlint.source import Source, UnreadableSourceError

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.semantics.project import Project


class Answer(str, Enum):
    """What the user says to one fix."""

    YES = "y"
    NO = "n"
    ALL = "a"  # this rule, from here on
    NEVER = "d"  # not this rule
    QUIT = "q"


Ask = Callable[[Finding, Source], Answer]


@dataclass
class Interview:
    """The answers so far, over all files. A finding is asked about once, unless its statement changes."""

    ask: Ask
    over: bool = False
    _accepted: set[str] = field(default_factory=set)
    _declined: set[str] = field(default_factory=set)
    _passed: set[tuple[str, Key, str]] = field(default_factory=set)

    def fix(self, source: Source, settings: Settings, project: Project) -> Fixed:
        """The file with the fixes that were wanted, safe and unsafe ones; nothing is written. A fix that leaves text
        that is not valid Python is not made."""
        before, applied, seen = source, list[Finding](), {source.text}
        found = examine(source, settings, project=project).findings
        while (finding := self._next(found)) is not None:
            if not self._wants(finding, source):
                continue
            after = _applied(source, finding)
            if after is None or after.text in seen:
                self._passed.add(_identity(finding))
                continue
            source = after
            seen.add(source.text)
            applied.append(finding)
            found = examine(source, settings, project=project).findings
        if applied:
            source = without_unused(before, source, project)
            found = examine(source, settings, project=project).findings
        return Fixed(before, source, tuple(applied), tuple(found))

    def _next(self, found: list[Finding]) -> Finding | None:
        if self.over:
            return None
        return next((f for f in found if applicable(f, unsafe=True) and self._is_open(f)), None)

    def _is_open(self, finding: Finding) -> bool:
        is_of_one_file = finding.fix is not None and not finding.fix.elsewhere
        is_asked = finding.code in self._declined or _identity(finding) in self._passed
        return is_of_one_file and not is_asked

    def _wants(self, finding: Finding, source: Source) -> bool:
        if finding.code in self._accepted:
            return True
        answer = self.ask(finding, source)
        if answer is Answer.ALL:
            self._accepted.add(finding.code)
        elif answer is Answer.NEVER:
            self._declined.add(finding.code)
        elif answer is Answer.NO:
            self._passed.add(_identity(finding))
        elif answer is Answer.QUIT:
            self.over = True
        return answer in (Answer.YES, Answer.ALL)


def _identity(finding: Finding) -> tuple[str, Key, str]:
    return finding.path, key_of(finding), finding.message


def _applied(source: Source, finding: Finding) -> Source | None:
    try:
        (after,) = apply_fixes([source], [finding])
    except (UnicodeEncodeError, UnreadableSourceError, ValueError):
        return None
    return after if does_compile(after) or not does_compile(source) else None
