"""No fix takes a comment away: those of the code that it replaces stand in what it writes, or it is not made."""

from __future__ import annotations

import re
import tokenize
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from torchlint.source import splice

if TYPE_CHECKING:
    from torchlint.finding import Edit

_AFTER_SIGN = re.compile(r"#[^\r\n]*")


def lost_comment(text: str, edits: Sequence[Edit]) -> str | None:
    """A comment that a text has and would not have after the edits; None where all stay."""
    replaced = [text[edit.start : edit.end] for edit in edits]
    if not any("#" in code for code in replaced):
        return None
    before = _comments(text)
    after = _comments(splice(text, edits)) if before is not None else None
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
