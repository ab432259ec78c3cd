"""Text to a LibCST tree, or the reason why not. LibCST itself is imported here and not before."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

from torchlint.diagnostics import SYNTAX_ERROR, TOO_COMPLEX, Diagnostic
from torchlint.source import Source

if TYPE_CHECKING:
    import libcst as cst

MOST_CHARACTERS = 3_000_000
_ONLY_BRACKETS = {code: None for code in range(128) if chr(code) not in "()[]{}"}
_BRACKET = re.compile(r"[()\[\]{}]")
# Wrong but in raw strings; LibCST reads a string literal only when somebody asks for its value.
_ODD_ESCAPE = re.compile(r"\\(?:x(?![0-9a-fA-F]{2})|u(?![0-9a-fA-F]{4})|U(?!00[0-9a-fA-F]{6})|N)")
_OLD_ARGUMENT = re.compile(r"async\s*=")  # of `x.cuda(async=True)`, until torch 0.4
_PLAUSIBLE_DEPTH = 150
_PLAUSIBLE_LINE = 4000


class UnparsableError(Exception):
    """`offset` is where the text goes wrong, 0 where that is no single place."""

    def __init__(self, kind: Diagnostic, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.kind, self.message, self.offset = kind, message, offset


def parse(source: Source) -> cst.Module:
    """Raises UnparsableError."""
    import libcst as cst

    text = source.text
    if len(text) > MOST_CHARACTERS:
        message = f"the file has more than {MOST_CHARACTERS:,} characters; its tree would take gigabytes"
        raise UnparsableError(TOO_COMPLEX, message)
    if "\0" in text:
        raise UnparsableError(SYNTAX_ERROR, "there is a null byte", text.index("\0"))
    _check_characters(text)
    if is_too_deep(text):
        raise UnparsableError(TOO_COMPLEX, "the file is nested too deeply to be parsed")
    try:
        tree = cst.parse_module(text)
        _check_escapes(source)
        return tree
    except cst.ParserSyntaxError as error:
        raise _explained(source, error) from error
    except (RecursionError, MemoryError) as error:
        raise UnparsableError(TOO_COMPLEX, "the file is nested too deeply to be parsed") from error


def _check_characters(text: str) -> None:
    """Raises UnparsableError. The JSON of a notebook can spell what no text in UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"there is a character that no encoding has: U+{ord(text[error.start]):04X}"
        raise UnparsableError(SYNTAX_ERROR, message, error.start) from error


def _check_escapes(source: Source) -> None:
    """Raises UnparsableError. What else the interpreter objects to may be syntax of a newer Python."""
    if _ODD_ESCAPE.search(source.text) is not None:
        try:
            _parse_quietly(source.text)
        except SyntaxError as error:
            if str(error.msg).startswith(("(unicode error)", "(value error)")):
                raise _rejected(source, error) from error


def check_syntax(source: Source) -> None:
    """Raises UnparsableError. For files that no rule will look at: LibCST is asked only if the interpreter objects."""
    try:
        _parse_quietly(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parse(source)


def _explained(source: Source, error: cst.ParserSyntaxError) -> UnparsableError:
    """In the words of the interpreter, which are clearer; where it accepts the text, LibCST falls short of Python."""
    kind, message = SYNTAX_ERROR, " ".join(error.message.split())
    try:
        _parse_quietly(source.text)
        kind, message = TOO_COMPLEX, f"LibCST cannot parse this syntax: {message}"
    except SyntaxError as own:
        return _rejected(source, own, error.raw_line)
    except (ValueError, RecursionError, MemoryError):
        pass
    return UnparsableError(kind, message, _offset(source, error.raw_line, error.raw_column))


def _rejected(source: Source, error: SyntaxError, line: int = 1) -> UnparsableError:
    """What the interpreter objects to. `line` is where that is, unless it says so itself."""
    place = _offset(source, error.lineno or line, (error.offset or 1) - 1)
    message = " ".join(str(error.msg).split())
    if _OLD_ARGUMENT.match(source.text, place):
        message += ": `async` is a keyword since Python 3.7, and torch calls this argument `non_blocking`"
    return UnparsableError(SYNTAX_ERROR, message, place)


def _offset(source: Source, line: int, column: int) -> int:
    start = source.line_starts[min(max(line, 1), len(source.line_starts)) - 1]
    return min(start + max(column, 0), len(source.text))


def is_too_deep(text: str) -> bool:
    """Whether CPython refuses to parse the text for its depth; LibCST's parser would overflow the stack.

    Asked only where brackets nest deeply or a line is very long, since parsing twice costs time.
    """
    brackets = text.translate(_ONLY_BRACKETS) if text.isascii() else "".join(_BRACKET.findall(text))
    for _ in range(_PLAUSIBLE_DEPTH):
        shorter = brackets.replace("()", "").replace("[]", "").replace("{}", "")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    if len(brackets) < _PLAUSIBLE_DEPTH and max(map(len, text.split("\n"))) < _PLAUSIBLE_LINE:
        return False
    try:
        _parse_quietly(text)
    except (RecursionError, MemoryError):
        return True
    except SyntaxError as error:
        return "too many nested" in str(error.msg)
    except ValueError:
        return False
    return False


def _parse_quietly(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(text)
