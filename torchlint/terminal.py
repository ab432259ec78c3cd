"""What a terminal needs: whether to use colour, text without control characters, and the width of characters."""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import IO

import click

_TAB = "    "


def use_color(choice: str, stream: IO[str] = sys.stdout) -> bool:
    """`choice` is always, never or auto: NO_COLOR, then FORCE_COLOR, then whether the stream is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, color: bool, foreground: str | None = None, bold: bool = False) -> str:
    """The text with the codes of a terminal, if it is to have color."""
    return click.style(text, fg=foreground, bold=bold or None) if color else text


def printable(text: str) -> str:
    """The text on one line, tabs as four spaces and control characters as a mark: source code drives no terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _TAB if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def width(text: str) -> int:
    """Columns that printable text takes."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "FW" else 1
