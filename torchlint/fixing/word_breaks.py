"""Words that nothing but a bracket keeps apart, which a fix takes away: `return(x)`, `(x)for x in xs`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from keyword import iskeyword

from torchlint.finding import Edit

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_LAST_WORD = re.compile(r"(?<!\w)[a-z]+\Z")
_LONGEST_KEYWORD = 10  # and what is before it


def set_apart(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits, in the order of the text, with a blank where two words would become one: `return x`."""
    made: list[Edit] = []
    for place, edit in enumerate(edits):
        first, last = text[edit.start : edit.end][:1], text[edit.start : edit.end][-1:]
        further = edits[place + 1 :]
        opens = first in _OPENING and _follows_keyword(text, edit.start)
        if opens and _is_of_word(_next(text, edit.end, [edit, *further])):
            edit = replace(edit, text=f" {edit.text}")
        closes = last in _CLOSING and _is_of_word(text[edit.end : edit.end + 1])
        if closes and _is_of_word(_next(text, edit.end, further)) and _is_of_word(_last(text, [*made, edit])):
            edit = replace(edit, text=f"{edit.text} ")
        made.append(edit)
    return tuple(made)


def _follows_keyword(text: str, offset: int) -> bool:
    word = _LAST_WORD.search(text[max(0, offset - _LONGEST_KEYWORD) : offset])
    return word is not None and iskeyword(word.group())


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _next(text: str, offset: int, edits: Iterable[Edit]) -> str:
    """The first character that these edits leave from an offset on, where the first of them may begin before it."""
    for edit in edits:
        if edit.start > offset:
            break
        if edit.text:
            return edit.text[0]
        offset = max(offset, edit.end)
    return text[offset : offset + 1]


def _last(text: str, edits: Sequence[Edit]) -> str:
    """The last character that is left before the end of the last edit."""
    offset = edits[-1].end
    for edit in reversed(edits):
        if edit.end < offset:
            break
        if edit.text:
            return edit.text[-1]
        offset = edit.start
    return text[offset - 1 : offset]
