"""Tabs that Python accepts and LibCST cannot represent: it keeps what a block adds to the indentation of the block
around it, so that a statement behind a tab and two spaces has no place in one behind two spaces."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence

_TABS = re.compile(r"^ *\t", re.MULTILINE)
_SPACES = re.compile(r"^\t* ", re.MULTILINE)
_NO_CODE = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


def with_nested_indentation(text: str) -> str:
    """The text, with a space for each tab before a statement where some block does not begin with the indentation of
    the block around it.

    The blocks stay what they are, since Python accepts tabs only where one column for each gives the same blocks as
    eight. Every character keeps its place.
    """
    if "\t" not in text or not (_TABS.search(text) and _SPACES.search(text) and _is_python(text)):
        return text
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    except (tokenize.TokenError, SyntaxError):
        return text
    if _is_nested(tokens):
        return text
    lines = list(io.StringIO(text, newline=""))
    for row in _statements(tokens):
        code = lines[row - 1].lstrip(" \t")
        lines[row - 1] = " " * (len(lines[row - 1]) - len(code)) + code
    return "".join(lines)


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_nested(tokens: Sequence[tokenize.TokenInfo]) -> bool:
    """Whether the indentation of every block begins with that of the block around it."""
    around = [""]
    for token in tokens:
        if token.type == tokenize.DEDENT:
            around.pop()
        elif token.type == tokenize.INDENT:
            if not token.string.startswith(around[-1]):
                return False
            around.append(token.string)
    return True


def _statements(tokens: Sequence[tokenize.TokenInfo]) -> Iterator[int]:
    """The rows on which a statement begins behind the end of another."""
    is_first = True
    for token in tokens:
        if is_first and token.type not in _NO_CODE:
            yield token.start[0]
            is_first = False
        is_first = is_first or token.type == tokenize.NEWLINE
