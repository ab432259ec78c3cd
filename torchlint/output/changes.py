"""Fixes and fixed files as differences of lines."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint.finding import Edit
from torchlint.source import Source, splice

if TYPE_CHECKING:
    from torchlint.fixing.passes import Fixed


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring lines before and after; `line` is the number of the first one, in a notebook within its cell, and
    `offset` where it begins in the text."""

    line: int
    offset: int
    removed: list[str]
    added: list[str]


def hunks(source: Source, edits: Sequence[Edit]) -> Iterator[Hunk]:
    """The lines that edits change, without any that stay the same around them."""
    groups: list[tuple[int, int]] = []
    for edit in edits:
        first, last = source.line_number(edit.start), source.line_number(edit.end)
        if groups and first <= groups[-1][1] + 1:
            groups[-1] = (groups[-1][0], max(last, groups[-1][1]))
        else:
            groups.append((first, last))
    starts = [*source.line_starts, len(source.text)]
    for first, last in groups:
        begin, end = starts[first - 1], starts[last]
        inside = [edit for edit in edits if begin <= edit.start <= edit.end <= end]
        after = splice(source.text[:end], inside)[begin:]
        removed, added = source.text[begin:end].splitlines(), after.splitlines()
        while removed and added and removed[0] == added[0]:
            removed, added, first = removed[1:], added[1:], first + 1
        while removed and added and removed[-1] == added[-1]:
            removed, added = removed[:-1], added[:-1]
        offset = min(starts[min(first, len(starts)) - 1], len(source.text))
        yield Hunk(source.locate(offset)[1], offset, removed, added)


def unified_diff(fixed: Fixed) -> str:
    """The change of a whole file, of a notebook's JSON as it stands in the file."""
    before, after = (s.data[len(s.bom) :].decode(s.encoding) for s in (fixed.before, fixed.source))
    name = fixed.before.path.as_posix()
    lines = difflib.unified_diff(_lines(before), _lines(after), name, name)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their newlines; only line feeds count, as for diff and patch."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([text.rpartition("\n")[2]] if text[-1:] != "\n" else [])
