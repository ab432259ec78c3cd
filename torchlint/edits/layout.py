"""The text around LibCST nodes: lines, margins and line ends, and where a node stands among statements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Edit
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_MARGIN = re.compile(r"[ \t\f]*")

Small = cst.BaseSmallStatement
SmallParent = cst.SimpleStatementLine | cst.SimpleStatementSuite
Sibling = cst.BaseStatement | cst.BaseSmallStatement


class CodeLayout:
    """What edits of one file must know of its text. Offsets count characters of `model.source.text`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._text = model.source.text
        self.newline: str = model.module.default_newline

    def insert(self, offset: int, text: str) -> Edit:
        return Edit(offset, offset, text)

    def comments(self, node: cst.CSTNode) -> str:
        """The comments on the lines of a statement and right above it, which a fix may leave behind as untrue."""
        place = self._model.statement(node)
        start, end = self._line_start(self._model.span(place)[0]), self._line_end(self._model.span(place)[1])
        beside = re.compile(r"#[^\r\n]*").findall(self._text[start:end])
        return self._comments_above(start) + "\n".join(beside)

    def _comments_above(self, start: int) -> str:
        """The lines right above one that hold nothing but a comment."""
        source = self._model.source
        here = first = source.line_number(start)
        while first > 1 and source.line(first - 1).lstrip(" \t\f").startswith("#"):
            first -= 1
        return self._text[source.line_starts[first - 1] : source.line_starts[here - 1]]

    def indentation(self, node: cst.CSTNode) -> str:
        """The white space before the statement that a node belongs to; of a one-line suite, of its compound."""
        place: cst.CSTNode = self._place(node)
        while isinstance(place, Small):
            parent = self._parent(place)
            place = parent if isinstance(parent, cst.SimpleStatementLine) else self._place(self._parent(parent))
        return self._margin(self._first_token(place))

    def unit(self, node: cst.CSTNode) -> str:
        """One level of indentation, as the block has it that a node begins, or else the one that it is in."""
        beside = self._unit_beside(self.indentation(node))
        for around in (node, *self._model.ancestors(node)):
            block = around if isinstance(around, cst.IndentedBlock) else getattr(around, "body", None)
            if isinstance(block, cst.IndentedBlock):
                return beside if block.indent is None else block.indent
        return beside

    def _unit_beside(self, indent: str) -> str:
        """One level of indentation, as the file has it; among tabs, a tab."""
        default = self._model.module.default_indent
        return "\t" if indent.strip(" ") and not default.strip(" ") else default

    def _block(self, lines: Sequence[str], indent: str, unit: str) -> str:
        return "".join((indent + _in_units(line, unit) if line else "") + self.newline for line in lines)

    def _laid_out(self, lines: Sequence[str], near: cst.CSTNode) -> list[str]:
        unit = self.unit(near)
        return [_in_units(line, unit) for line in lines]

    def _margin(self, offset: int) -> str:
        match = _MARGIN.match(self._text, self._line_start(offset), offset)
        return match.group() if match else ""

    def _line_start(self, offset: int) -> int:
        return max(self._text.rfind("\n", 0, offset), self._text.rfind("\r", 0, offset)) + 1

    def _line_end(self, offset: int) -> int:
        """The offset behind the line end that follows, past a comment and escaped line ends."""
        match = re.compile(r"(?:\\(?:\r\n|\r|\n)|[^#\r\n\\])*(?:#[^\r\n]*)?(?:\r\n|\r|\n)?").match(self._text, offset)
        return match.end() if match else offset

    def _lines_outside_strings(self, statements: Sequence[Sibling], start: int, end: int) -> list[int]:
        """Offsets of the lines in [start, end) that hold something and do not begin inside a string that is used."""
        strings = [
            self._model.span(node)
            for root in statements
            for node in walk(root)
            if isinstance(node, cst.BaseString)
            and not isinstance(node, cst.ConcatenatedString)
            and not self._is_text_alone(node)
        ]
        begins = [start, *(match.end() for match in re.compile(r"\r\n|\r|\n").finditer(self._text, start, end))]
        return [
            line
            for line in begins
            if line < end
            and not re.compile(r"[ \t\f]*(?:[\r\n]|$)").match(self._text, line)
            and not any(first < line < last for first, last in strings)
        ]

    def _is_text_alone(self, node: cst.BaseString) -> bool:
        """Whether a string is a statement, as code that is taken out, and documents nothing."""
        line = self._parent(self._parent(node))
        block = self._parent(line)
        return (
            isinstance(self._parent(node), cst.Expr)
            and isinstance(block, cst.IndentedBlock)
            and not (isinstance(self._parent(block), (cst.FunctionDef, cst.ClassDef)) and block.body[0] is line)
        )

    def _comments_of_block(self, offset: int, indent: str) -> int:
        """Past the comment lines after `offset` that stand deeper than `indent`."""
        comment = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n))*" + re.escape(indent) + r"[ \t\f]+#[^\r\n]*(?:\r\n|\r|\n)?")
        while match := comment.match(self._text, offset):
            offset = match.end()
        return offset

    def _comma_after(self, offset: int) -> int | None:
        """The offset behind the comma that follows, past white space and comments."""
        match = re.compile(r"(?:\s|\\|#[^\r\n]*[\r\n])*,").match(self._text, offset)
        return match.end() if match else None

    def _rest_of_line(self, offset: int) -> str:
        """A comment, and the white space before it, that ends the line of an offset."""
        match = re.compile(r"[ \t\f]*#[^\r\n]*").match(self._text, offset)
        return match.group() if match else ""

    def _code(self, node: cst.CSTNode) -> str:
        start, end = self._model.span(node)
        return self._text[start:end]

    def _place(self, node: cst.CSTNode) -> cst.BaseStatement | Small:
        """The statement that can have neighbours: a small one, or one that begins a line."""
        while True:
            parent = self._model.parent(node)
            if isinstance(node, cst.BaseStatement) and not (isinstance(node, cst.If) and isinstance(parent, cst.If)):
                return node
            if isinstance(node, Small):
                return node
            node = self._parent(node)

    def _parent(self, node: cst.CSTNode) -> cst.CSTNode:
        parent = self._model.parent(node)
        if parent is None:
            raise ValueError("a module has no place among statements")
        return parent

    def _among(self, small: Small) -> tuple[SmallParent, int]:
        parent = self._parent(small)
        assert isinstance(parent, SmallParent)
        return parent, [*parent.body].index(small)

    def _first_token(self, node: cst.CSTNode) -> int:
        """Where a statement begins, decorators included."""
        decorators: Sequence[cst.Decorator] = getattr(node, "decorators", ())
        if decorators:
            return self._text.rindex("@", 0, self._model.span(decorators[0].decorator)[0])
        return self._model.span(node)[0]


def _in_units(line: str, unit: str) -> str:
    bare = line.lstrip(" ")
    return unit * ((len(line) - len(bare)) // 4) + bare
