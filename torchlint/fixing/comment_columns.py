"""Comments at the ends of lines stay in one column with those above and below, where fixes have moved them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.edits.line_breaking import Layout, layout_of
from torchlint.edits.line_matcher import LineMatcher
from torchlint.finding import Edit

if TYPE_CHECKING:
    from torchlint.source import Source

_LEAST = 2  # blanks in front of a comment


def realigned(before: Source, after: Source) -> Source:
    """`after`, with the comments of lines that have changed where they stood in `before`, or as near as the code lets
    them, if they stood there in line with another. Nothing but blanks changes."""
    own = set(before.text.splitlines())
    if not any("#" in line and line not in own for line in after.text.splitlines()):
        return after
    old, new = layout_of(before.text), layout_of(after.text)
    if old is None or new is None:
        return after
    edits = [edit for row, place in _changed(old, new) if (edit := _moved(old, row, new, place)) is not None]
    return after.apply(edits) if edits and after.objection(edits) is None else after


def _changed(old: Layout, new: Layout) -> Iterator[tuple[int, int]]:
    """The rows of lines that have changed, before and after, where as many lines have taken their place."""
    own, made = ([layout.line(row) for row in range(len(layout.starts) - 1)] for layout in (old, new))
    for _, first, last, start, end in LineMatcher(own, made).get_opcodes():
        if last - first == end - start:
            yield from ((a, b) for a, b in zip(range(first, last), range(start, end)) if own[a] != made[b])


def _moved(old: Layout, row: int, new: Layout, place: int) -> Edit | None:
    column, code = _column(old, row), _code_before_comment(new, place)
    if column is None or code is None or column not in (_column(old, row - 1), _column(old, row + 1)):
        return None
    start, comment = new.starts[place], new.comments[place]
    if new.text[comment:].partition("\n")[0].rstrip() != old.text[old.comments[row] :].partition("\n")[0].rstrip():
        return None
    room = max(column - len(code), _LEAST)
    if comment - start == len(code) + room or _indentation(code) != _indentation(old.line(row)):
        return None
    if "\t" in code.strip() + old.line(row).strip():
        return None
    return Edit(start + len(code), comment, " " * room)


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _column(layout: Layout, row: int) -> int | None:
    """Where the comment behind the code of a row begins."""
    return layout.comments[row] - layout.starts[row] if _code_before_comment(layout, row) else None


def _code_before_comment(layout: Layout, row: int) -> str | None:
    comment = layout.comments.get(row)
    return layout.text[layout.starts[row] : comment].rstrip() if comment is not None else None
