"""Jupyter notebooks: code cells joined to one program, and edits put back into the JSON, the rest byte for byte.

IPython's own syntax (`%magic`, `!command`, `?help`, `pip install`) becomes a stand-in of the same length, so that every
other character keeps its place. Cells hold where their `source` stands in the document; only the JSON of changed cells
is written anew.
"""

from __future__ import annotations

import json
import re
import warnings
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torchlint.finding import Edit

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_MAGIC = re.compile(r"[ \t]*(?:[%!?]|[\w.]+\?{1,2}[ \t]*$)")
# Magics without a `%`, which IPython takes where no variable has the name. Only asked of cells that do not compile.
_AUTOMAGIC = re.compile(
    r"^[ \t]*(?:pip|conda|mamba|uv|cd|ls|ll|cat|cp|mv|rm|mkdir|rmdir|run|time|timeit|matplotlib|load_ext|autoreload)"
    r"[ \t]+(?!(?:in|is|if|and|or|not|for|else)\b)[\w./~'\"-]",
    re.MULTILINE,
)
_MAGIC_VALUE = re.compile(r"(?P<target>[ \t]*[\w.,* \t\[\]'\"]+=[ \t]*)(?P<magic>[%!].*)")
_PYTHON_CELL_MAGICS = frozenset({"time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "scalene"})
_STRING_OR_BRACKET = re.compile(r"#[^\r\n]*|(?P<quote>\"\"\"|'''|\"|')|(?P<open>[(\[{])|(?P<close>[)\]}])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its index in the notebook, its span in the joined text and its `source` value in the document."""

    index: int
    start: int
    text: str
    magics: tuple[tuple[int, int], ...]
    value_start: int
    value_end: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def accepts(self, edit: Edit) -> bool:
        if not self.start <= edit.start <= edit.end <= self.end:
            return False
        return not any(edit.start < self.start + end and self.start + start < edit.end for start, end in self.magics)


def read_notebook(document: str) -> tuple[str, tuple[Cell, ...]]:
    """The joined program and its cells. Raises ValueError where the document is not a notebook."""
    notebook = json.loads(document)
    if not isinstance(notebook, dict):
        raise ValueError("the document is not a JSON object")
    if _language(notebook) not in ("python", "ipython", None):
        return "", ()
    cells: list[Cell] = []
    parts: list[str] = []
    position = 0
    for index, kind, value, start, end in _cell_sources(document):
        if kind != "code":
            continue
        text = "".join(value) if isinstance(value, list) else value
        python, magics = set_magics_aside(text)
        cells.append(Cell(index, position, text, magics, start, end))
        parts += (python, "\n")
        position += len(text) + 1
    return "".join(parts), tuple(cells)


def _language(notebook: dict[str, Any]) -> str | None:
    metadata = notebook.get("metadata")
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        entry = metadata.get(key) if isinstance(metadata, dict) else None
        name = entry.get(field) if isinstance(entry, dict) else None
        if isinstance(name, str):
            return name.lower()
    return None


def _cell_sources(document: str) -> list[tuple[int, str, Any, int, int]]:
    """Index, type, source value and the value's span of every cell that has a source of text."""
    found = []
    for key, start, _ in _members(document, _BLANK.match(document).end()):  # type: ignore[union-attr]
        if key != "cells" or document[start] != "[":
            continue
        for index, cell_start in enumerate(_elements(document, start)):
            kind, value, span = "", None, (0, 0)
            for name, begin, end in _members(document, cell_start):
                if name == "cell_type":
                    kind = _DECODER.raw_decode(document, begin)[0]
                elif name == "source":
                    value, span = _DECODER.raw_decode(document, begin)[0], (begin, end)
            if isinstance(value, str) or (isinstance(value, list) and all(isinstance(line, str) for line in value)):
                found.append((index, kind, value, *span))
    return found


def _skip(document: str, position: int) -> int:
    match = _BLANK.match(document, position)
    assert match is not None
    return match.end()


def _members(document: str, position: int) -> Iterable[tuple[str, int, int]]:
    """Key and span of the value, for every member of the object that begins here. The document is valid JSON."""
    if document[position] != "{":
        return
    position = _skip(document, position + 1)
    while document[position] != "}":
        key, position = _DECODER.raw_decode(document, position)
        start = _skip(document, _skip(document, position) + 1)
        _, end = _DECODER.raw_decode(document, start)
        yield key, start, end
        position = _skip(document, end)
        if document[position] == ",":
            position = _skip(document, position + 1)


def _elements(document: str, position: int) -> Iterable[int]:
    """Where each element of the array that begins here starts."""
    position = _skip(document, position + 1)
    while document[position] != "]":
        yield position
        _, end = _DECODER.raw_decode(document, position)
        position = _skip(document, end)
        if document[position] == ",":
            position = _skip(document, position + 1)


def write_cells(document: str, cells: Sequence[Cell], edits: Sequence[Edit]) -> str:
    """The document with the edits, each inside one of the cells, made in the cells' sources."""
    parts: list[str] = []
    position = 0
    remaining = sorted(edits, key=lambda edit: (edit.start, edit.end))
    for cell in cells:
        own = [edit for edit in remaining if cell.accepts(edit)]
        remaining = [edit for edit in remaining if edit not in own]
        if own:
            parts += (document[position : cell.value_start], _encode(document, cell, own))
            position = cell.value_end
    if remaining:
        raise ValueError("an edit lies outside of the notebook's cells")
    return "".join((*parts, document[position:]))


def _encode(document: str, cell: Cell, edits: Sequence[Edit]) -> str:
    """The JSON of the cell's new source, in the layout of the old one; unchanged lines keep their spelling."""
    text: list[str] = []
    position = 0
    for edit in edits:
        text += (cell.text[position : edit.start - cell.start], edit.text)
        position = edit.end - cell.start
    new = "".join((*text, cell.text[position:]))
    old = document[cell.value_start : cell.value_end]
    plain_ascii = old.isascii() and not new.isascii() and document.isascii()
    if not old.startswith("["):
        return json.dumps(new, ensure_ascii=plain_ascii)
    spans = [(start, _DECODER.raw_decode(old, start)[1]) for start in _elements(old, 0)]
    spelling = {json.loads(old[start:end]): old[start:end] for start, end in spans}
    lines = [spelling.get(line) or json.dumps(line, ensure_ascii=plain_ascii) for line in _LINE.findall(new)]
    if not spans:
        return json.dumps(_LINE.findall(new), ensure_ascii=plain_ascii)
    opening, closing = old[: spans[0][0]], old[spans[-1][1] :]
    comma = old[spans[0][1] : spans[1][0]] if len(spans) > 1 else "," + (opening[1:] or " ")
    return opening + comma.join(lines) + closing if lines else "[]"


def set_magics_aside(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The cell with IPython's own syntax replaced by Python of the same length, and the spans of the replaced lines."""
    if text.lstrip().startswith("%%"):
        return _set_cell_magic_aside(text)
    if not (any(mark in text for mark in "%!?") or _AUTOMAGIC.search(text)) or _compiles(text):
        return text, ()
    return _set_lines_aside(text)


def _set_cell_magic_aside(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    lines = _LINE.findall(text)
    first = next(number for number, line in enumerate(lines) if line.strip())
    name = lines[first].strip()[2:].split(None, 1)[:1]
    head = sum(map(len, lines[: first + 1]))
    if name and name[0] in _PYTHON_CELL_MAGICS:
        rest, magics = set_magics_aside(text[head:])
        shifted = tuple((start + head, end + head) for start, end in magics)
        return _comment_out(text[:head]) + rest, ((0, head), *shifted)
    return _comment_out(text), ((0, len(text)),)


def _comment_out(text: str) -> str:
    return "".join("#" + line[1:] if line.strip() else line for line in _LINE.findall(text))


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "cell", "exec", PyCF_ONLY_AST | PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _set_lines_aside(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    parts: list[str] = []
    magics: list[tuple[int, int]] = []
    position, depth, quote, continued = 0, 0, "", False
    for line in _LINE.findall(text):
        body = line.rstrip("\r\n")
        stand_in = None if depth or quote else _stand_in(body, continued)
        if stand_in is None:
            depth, quote = _follow(body, depth, quote)
            continued = False
        else:
            magics.append((position, position + len(body)))
            continued = body.endswith("\\")
        parts.append((body if stand_in is None else stand_in) + line[len(body) :])
        position += len(line)
    return "".join(parts), tuple(magics)


def _stand_in(line: str, continued: bool) -> str | None:
    """Python of the same length for a line of IPython syntax, None for any other line."""
    if continued:
        return "#" + line[1:] if line else line
    if _MAGIC.match(line) or _AUTOMAGIC.match(line):
        code = line.lstrip(" \t")
        return line[: len(line) - len(code)] + _statement(len(code), code)
    assigned = _MAGIC_VALUE.fullmatch(line)
    if assigned is None:
        return None
    magic = assigned["magic"]
    return assigned["target"] + ("_" + "#" + magic[2:] if len(magic) > 1 else "_")


def _statement(length: int, code: str) -> str:
    if length >= 5:
        return "pass#" + code[5:]
    return ("", "0", "0 ", "...", "pass")[length]


def _follow(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Bracket depth and open triple quote at the end of a line of Python."""
    position = 0
    while position < len(line):
        if quote:
            end = _closing(line, position, quote)
            if end < 0:
                return depth, quote if len(quote) == 3 or line.endswith("\\") else ""
            position, quote = end, ""
            continue
        match = _STRING_OR_BRACKET.search(line, position)
        if match is None or match[0].startswith("#"):
            break
        position = match.end()
        quote = match["quote"] or ""
        depth = max(0, depth + bool(match["open"]) - bool(match["close"]))
    return depth, quote


def _closing(line: str, position: int, quote: str) -> int:
    while position < len(line):
        if line[position] == "\\":
            position += 2
        elif line.startswith(quote, position):
            return position + len(quote)
        else:
            position += 1
    return -1
