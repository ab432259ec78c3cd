"""Fixes and fixed files as differences of lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint.edits.line_matcher import LineMatcher
from torchlint.finding import Edit
from torchlint.source import Source, splice

if TYPE_CHECKING:
    from torchlint.fixing.passes import Fixed


_AROUND = 3  # lines of a unified diff that stay the same around a change


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
    lines = [f"--- {name}\n", f"+++ {name}\n", *_hunk_lines(_lines(before), _lines(after))]
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _hunk_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """The lines of a unified diff, each change with three lines around it."""
    for group in LineMatcher(before, after).get_grouped_opcodes(_AROUND):
        (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
        yield f"@@ -{_range(first, last)} +{_range(start, end)} @@\n"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[old_start:old_end])
                continue
            yield from (f"-{line}" for line in before[old_start:old_end])
            yield from (f"+{line}" for line in after[new_start:new_end])


def _range(start: int, end: int) -> str:
    """The lines [start, end) as a unified diff gives them; an empty range by the line before it."""
    length = end - start
    return f"{start + 1}" if length == 1 else f"{start + bool(length)},{length}"


def _lines(text: str) -> list[str]:
    """Lines with their newlines; only line feeds count, as for diff and patch."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])
