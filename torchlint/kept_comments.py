"""No fix takes a comment away: those of the code that it replaces stand in what it writes, or it is not made."""

from __future__ import annotations

import re
import tokenize
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.finding import Edit
    from torchlint.source import Source

_AFTER_SIGN = re.compile(r"#[^\r\n]*")


def lost_comment(source: Source, edits: Sequence[Edit]) -> str | None:
    """A comment that the source has and would not have after the edits, which it must allow; None where all stay."""
    replaced = [source.text[edit.start : edit.end] for edit in edits]
    if not any("#" in code for code in replaced):
        return None
    before = _comments(source.text)
    after = _comments(source.apply(edits).text) if before is not None else None
    if before is None or after is None:
        before = Counter(_stripped(comment) for code in replaced for comment in _AFTER_SIGN.findall(code))
        after = Counter(_stripped(comment) for edit in edits for comment in _AFTER_SIGN.findall(edit.text))
    return next(iter(before - after), None)


def _comments(text: str) -> Counter[str] | None:
    """None for what is no Python, as a notebook with lines of IPython is not."""
    lines = iter([*StringIO(text, newline=""), ""])
    try:
        tokens = [*tokenize.generate_tokens(lines.__next__)]
    except (tokenize.TokenError, SyntaxError, StopIteration):
        return None
    return Counter(_stripped(token.string) for token in tokens if token.type == tokenize.COMMENT)


def _stripped(comment: str) -> str:
    return comment.rstrip()
