"""One file as it is linted: its bytes, its text, and where a character offset lies in it.

The text keeps what the bytes said: newlines of any kind, a missing final newline, form feeds. A byte order mark and the
declared encoding are remembered and come back when the text is encoded again. A notebook's code cells are joined to one
program (torchlint/notebook.py).
"""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from torchlint.finding import Edit
from torchlint.indentation import with_nested_indentation
from torchlint.notebook import Cell, read_notebook, write_cells

_NEWLINE = re.compile(r"\r\n|\r|\n")


class UnreadableSourceError(Exception):
    """The bytes are not Python source text: an unknown encoding, invalid characters, a broken notebook."""


def is_worth_linting(data: bytes) -> bool:
    """The gate on raw bytes: False where no rule, and no suppression comment, can have anything to say."""
    return b"torch" in data


@dataclass(frozen=True, eq=False)
class Source:
    """`text` is what is parsed; offsets of findings and edits count its characters.

    In a notebook `text` has IPython's own syntax set aside by stand-ins of the same length, and `data` is the JSON.
    `is_reindented`: `text` has spaces where the file has tabs (torchlint/indentation.py). `kept_length`: the customary
    length of the lines that fixes have made this text of.
    """

    path: Path
    data: bytes
    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    cells: tuple[Cell, ...] = ()
    is_reindented: bool = False
    kept_length: int | None = None

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Source:
        """Raises UnreadableSourceError where the bytes cannot be decoded."""
        bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        if path.suffix == ".ipynb":
            return cls._from_notebook(data, path, bom)
        encoding = _encoding(data)
        try:
            text = data[len(bom) :].decode(encoding)
        except (UnicodeDecodeError, LookupError) as error:
            raise UnreadableSourceError(f"cannot be decoded as {encoding}: {error}") from error
        nested = with_nested_indentation(text)
        return cls(path, data, nested, encoding, bom, is_reindented=nested != text)

    @classmethod
    def _from_notebook(cls, data: bytes, path: Path, bom: bytes) -> Source:
        try:
            document = data[len(bom) :].decode("utf-8")
            text, cells = read_notebook(document)
        except (ValueError, RecursionError) as error:
            raise UnreadableSourceError(f"is not a notebook: {error}") from error
        return cls(path, data, text, "utf-8", bom, cells)

    @classmethod
    def from_text(cls, text: str, path: str | Path = "module.py") -> Source:
        return cls(Path(path), text.encode("utf-8", "surrogatepass"), text)

    @classmethod
    def read(cls, path: Path) -> Source:
        """Raises OSError and UnreadableSourceError."""
        return cls.from_bytes(path.read_bytes(), path)

    @property
    def is_notebook(self) -> bool:
        return self.path.suffix == ".ipynb"

    @cached_property
    def customary_length(self) -> int:
        """How many characters the lines of the file had before any fix, as far as its own lines tell."""
        from torchlint.files.line_length import customary

        return self.kept_length or customary(self.text.splitlines())

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """Offset of the first character of every line. Only CR, LF and CRLF end a line, as in Python's grammar."""
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def line_number(self, offset: int) -> int:
        """1-based line of the joined text; in a notebook this is not the line within the cell."""
        return bisect_right(self.line_starts, offset)

    def line(self, number: int) -> str:
        """Text of the 1-based line, without its newline."""
        starts = self.line_starts
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def locate(self, offset: int) -> tuple[int | None, int, int]:
        """Cell (index in the notebook's cells, None elsewhere), line and column, both 1-based, of an offset."""
        number = self.line_number(offset)
        column = offset - self.line_starts[number - 1] + 1
        if not self.cells:
            return None, number, column
        cell = self.cells[max(0, bisect_right([cell.start for cell in self.cells], offset) - 1)]
        return cell.index, number - self.line_number(cell.start) + 1, column

    def objection(self, edits: Iterable[Edit]) -> str | None:
        """Why the edits cannot be made; None where they can, as always in a plain file."""
        if self.is_notebook and not all(any(cell.accepts(edit) for cell in self.cells) for edit in edits):
            return "the fix reaches from one cell into another, or changes a line with IPython's own syntax"
        if self.is_reindented and any(self._indents(edit) for edit in edits):
            return "the fix writes lines of its own, and the file mixes tabs and spaces in its indentation"
        return None

    def _indents(self, edit: Edit) -> bool:
        """Whether an edit writes the start of a line."""
        return _NEWLINE.search(edit.text) is not None or (bool(edit.text) and edit.start in self.line_starts)

    def apply(self, edits: Sequence[Edit]) -> Source:
        """The source after the edits, which must not overlap.

        Raises UnicodeEncodeError where the new text has characters that the file's encoding lacks.
        """
        if self.is_notebook:
            document = write_cells(self.data[len(self.bom) :].decode("utf-8"), self.cells, edits)
            after = Source.from_bytes(self.bom + document.encode("utf-8"), self.path)
            return replace(after, kept_length=self.customary_length)
        if self.is_reindented:
            written = splice(self.data[len(self.bom) :].decode(self.encoding), edits)
            after = Source.from_bytes(self.bom + written.encode(self.encoding), self.path)
            return replace(after, kept_length=self.customary_length)
        text = splice(self.text, edits)
        data = self.bom + text.encode(self.encoding)
        return replace(self, text=text, data=data, kept_length=self.customary_length)


def splice(text: str, edits: Iterable[Edit]) -> str:
    """The text with non-overlapping edits made; insertions at one place keep the order in which they were given."""
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += (text[position : edit.start], edit.text)
        position = edit.end
    return "".join((*parts, text[position:]))


def _encoding(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise UnreadableSourceError(f"cannot be decoded: {error.msg}") from error
    return "utf-8" if encoding == "utf-8-sig" else encoding
