"""The text of an open document: what is found in it, and its fixes. Nothing here speaks the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from torchlint.config import Settings
from torchlint.edits.line_matcher import LineMatcher
from torchlint.files.discovery import Target, is_excluded, shown
from torchlint.filters.add_ignore import add_ignores
from torchlint.filters.narrowing import Baselines
from torchlint.finding import Edit, Finding
from torchlint.fixing.passes import fix_source
from torchlint.running.task import Task
from torchlint.running.work import process
from torchlint.settings_file import Configuration
from torchlint.source import Source, is_worth_linting


@dataclass(frozen=True)
class Checked:
    """A document as it was when it was checked."""

    source: Source
    settings: Settings
    findings: tuple[Finding, ...] = ()


def check(path: Path, text: str) -> Checked:
    """What `torchlint check PATH` would say if the file had this text. Raises ConfigError."""
    settings = Configuration().for_path(path)
    source = _source(Path(shown(str(path))), text)
    if is_excluded(path, settings) or not is_worth_linting(source.data):
        return Checked(source, settings)
    (target,) = Baselines().narrow([Target(source.path, settings)])
    result = process(Task(source.path, source.data, target.settings))
    return Checked(result.source or source, target.settings, result.findings)


def _source(path: Path, text: str) -> Source:
    """The text in the encoding that it declares, as it would be saved."""
    source = Source.from_bytes(text.encode("utf-8", "backslashreplace"), path)
    if source.encoding == "utf-8":
        return source
    return Source.from_bytes(text.encode(source.encoding, "backslashreplace"), path)


def all_fixes(checked: Checked) -> list[Edit]:
    """The edits that make all fixes, the safe ones unless the settings say otherwise."""
    from torchlint.semantics.project import Project

    fixed = fix_source(checked.source, checked.settings, checked.settings.unsafe_fixes, project=Project())
    return changed_lines(checked.source, fixed.source)


def suppression(checked: Checked, finding: Finding) -> list[Edit]:
    """The edits that put a comment at a finding; none where there is no place for one."""
    try:
        return changed_lines(checked.source, add_ignores(checked.source, [finding]).source)
    except UnicodeEncodeError:
        return []


def changed_lines(before: Source, after: Source) -> list[Edit]:
    """Edits that make one text of the other and leave lines alone that both have; in a notebook cell by cell."""
    if not before.cells:
        return list(_edits(0, before.text, after.text))
    return [
        edit for cell, fixed in zip(before.cells, after.cells) for edit in _edits(cell.start, cell.text, fixed.text)
    ]


def _edits(position: int, before: str, after: str) -> Iterator[Edit]:
    """Of a text that stands at a position."""
    starts = _line_starts(before)
    changes = LineMatcher(_lines(before), _lines(after)).get_opcodes()
    others = _line_starts(after)
    for kind, first, last, start, end in changes:
        if kind != "equal":
            yield Edit(position + starts[first], position + starts[last], after[others[start] : others[end]])


def _lines(text: str) -> list[str]:
    return [text[start:end] for start, end in pairwise(_line_starts(text))]


def _line_starts(text: str) -> list[int]:
    """And where the last line ends."""
    return [*Source.from_text(text).line_starts, len(text)]
