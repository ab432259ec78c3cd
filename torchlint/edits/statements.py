"""Edits of statements: they are put in, taken out, and moved into blocks.

Statements to insert are given as lines without indentation; a line of their own block begins with four spaces per
level, and comes out in the indentation and with the line ends of the file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.layout import CodeLayout, Sibling, Small, SmallParent
from torchlint.finding import Edit
from torchlint.semantics.parallel_assignment import independent_pairs

if TYPE_CHECKING:
    pass

Compound = cst.BaseCompoundStatement | cst.Else | cst.Finally | cst.ExceptHandler | cst.ExceptStarHandler


class StatementEdits(CodeLayout):
    """Builds edits of statements in one file, which follow how the text around them is laid out."""

    def insert_before(self, node: cst.CSTNode, *lines: str) -> Edit:
        """Statements before the one that a node belongs to. In a one-line suite they stay in the suite."""
        place = self._place(node)
        if isinstance(place, Small):
            parent, index = self._among(place)
            return self._insert_among(parent, index, lines)
        block = self._block(lines, self.indentation(place), self.unit(place))
        return self.insert(self._line_start(self._first_token(place)), block)

    def insert_after(self, node: cst.CSTNode, *lines: str) -> Edit:
        """Statements after the one that a node belongs to, and after the comments that are part of its block."""
        place = self._place(node)
        if isinstance(place, Small):
            parent, index = self._among(place)
            return self._insert_among(parent, index + 1, lines)
        indent = self.indentation(place)
        end = self._line_end(self._model.span(place)[1])
        if not isinstance(place, cst.SimpleStatementLine):
            end = self._comments_of_block(end, indent)
        return self._insert_line(end, self._block(lines, indent, self.unit(place)))

    def prepend_to_body(self, compound: Compound, *lines: str) -> Edit:
        """Statements at the beginning of a body, after its docstring."""
        body = compound.body
        documented = isinstance(compound, (cst.FunctionDef, cst.ClassDef))
        if isinstance(body, cst.SimpleStatementSuite):
            return self._insert_among(body, int(documented and is_docstring(body.body[0])), lines)
        first = body.body[0]
        indent = self.indentation(first)
        if documented and isinstance(first, cst.SimpleStatementLine) and is_docstring(first.body[0]):
            return self._insert_among(first, 1, lines)
        start = self._line_start(self._first_token(first))
        for _ in getattr(first, "leading_lines", ()):
            start = self._line_start(start - (2 if self._text.endswith("\r\n", 0, start) else 1))
        return self.insert(start, self._block(lines, indent, self.unit(first)))

    def remove_statement(self, node: cst.CSTNode) -> Edit | None:
        """Takes out the simple statement that a node belongs to. Comments stay; an empty block gets a `pass`.

        None for a compound statement.
        """
        place = self._place(node)
        if isinstance(place, cst.SimpleStatementLine) and len(place.body) == 1:
            place = place.body[0]
        if not isinstance(place, Small):
            return None
        parent, index = self._among(place)
        start, end = self._model.span(place)
        if len(parent.body) > 1:
            if index + 1 < len(parent.body):
                return Edit(start, self._model.span(parent.body[index + 1])[0], "")
            return Edit(self._model.span(parent.body[index - 1])[1], end, "")
        block = self._model.parent(parent)
        if isinstance(parent, cst.SimpleStatementSuite) or (
            isinstance(block, cst.IndentedBlock) and len(block.body) == 1
        ):
            return Edit(start, end, "pass")
        line_end = self._line_end(end)
        comment = self._text.find("#", end, line_end)
        if comment >= 0:
            return Edit(start, comment, "")
        first = self._line_start(start)
        if first and line_end > end and self._model.source.objection([Edit(first, line_end, "")]) is not None:
            return Edit(first - 1, end, "")  # the line end behind it is that of a cell of a notebook
        return Edit(first, self._past_blank_lines(first, line_end), "")

    def remove_clause(self, block: cst.BaseSuite) -> Edit | None:
        """Takes out a `with` or an `else` of which nothing is left; None where another clause needs it, or a comment or
        a name stands in it."""
        clause = self._parent(block)
        is_with = isinstance(clause, cst.With) and all(item.asname is None for item in clause.items)
        if not is_with and not (isinstance(clause, cst.Else) and isinstance(self._parent(clause), cst.If)):
            return None
        above = self._parent(clause)
        if is_with and isinstance(above, cst.IndentedBlock) and len(above.body) == 1:
            return None
        start = self._line_start(self._text.rindex("else", 0, self._model.span(block)[0])) if not is_with else None
        start = self._line_start(self._model.span(clause)[0]) if start is None else start
        end = self._line_end(self._model.span(block.body[-1])[1])
        return None if "#" in self._text[start:end] else Edit(start, end, "")

    def remove_with_condition(self, node: cst.CSTNode) -> Edit | None:
        """Takes out a simple statement, and the `if` around it that is there for nothing else."""
        condition = next((above for above in self._model.ancestors(node) if isinstance(above, cst.If)), None)
        if condition is not None and condition.orelse is None and self._holds_only(condition, node):
            start, end = self._model.span(condition)
            outer = self._model.parent(condition)
            alone = not isinstance(outer, (cst.IndentedBlock, cst.Module)) or len(outer.body) == 1
            if not alone and "#" not in self._text[start : self._line_end(end)]:
                first = self._line_start(start)
                return Edit(first, self._past_blank_lines(first, self._line_end(end)), "")
        return self.remove_statement(node)

    def indent_under(self, statements: Sequence[Sibling], header: str) -> list[Edit] | None:
        """Puts neighbouring statements into a block of their own, as in `with torch.no_grad():`.

        Lines that begin inside a string stay as they are. None where the statements share a line with others.
        """
        first, last = statements[0], statements[-1]
        if isinstance(first, Small):
            return self._suite_under(statements, header)
        indent, unit = self.indentation(first), self.unit(first)
        start = self._line_start(self._first_token(first))
        end = self._line_end(self._model.span(last)[1])
        if not isinstance(last, cst.SimpleStatementLine):
            end = self._comments_of_block(end, indent)
        edits = [self.insert(start, self._block([header], indent, unit))]
        for line in self._lines_outside_strings(statements, start, end):
            rest = self._text[line:end]
            own = len(indent) if rest.startswith(indent) else 0
            edits.append(self.insert(line + own, unit))
        if edits[1].start == start:  # a header and an indentation at one offset are one edit
            edits[:2] = [self.insert(start, edits[0].text + unit)]
        return edits

    def decorate(self, function: cst.FunctionDef, decorator: str) -> Edit:
        """A decorator right above `def`, inside the ones that are there."""
        start = self._model.span(function)[0]
        return self.insert(self._line_start(start), self._margin(start) + decorator + self.newline)

    def assign_apart(self, assign: cst.Assign) -> list[Edit] | None:
        """`a, b = f(a), g(b)` as `a = f(a)` and `b = g(b)`, where the order makes no difference; None elsewhere.

        A comment behind them goes above, where it still speaks of them all. The edits leave the values as they are, for
        others of the same fix to change.
        """
        line = self._parent(assign)
        pairs = independent_pairs(assign)
        if pairs is None or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return None
        start, end = self._model.span(assign)
        first = self._model.span(pairs[0][1])[0]
        if "#" in self._text[start:end]:
            return None
        comment = self._text[end : self._line_end(end)].strip()
        above = f"{comment}{self.newline}{self.indentation(line)}" if comment.startswith("#") else ""
        edits = [Edit(start, first, f"{above}{self._code(pairs[0][0])} = ")]
        for (_, before), (target, value) in pairwise(pairs):
            head = f"{self.newline}{self.indentation(line)}{self._code(target)} = "
            edits.append(Edit(self._model.span(before)[1], self._model.span(value)[0], head))
        behind = end + len(self._text[end : self._line_end(end)].rstrip("\r\n")) if above else end
        return [*edits, Edit(self._model.span(pairs[-1][1])[1], behind, "")]

    def _past_blank_lines(self, start: int, end: int) -> int:
        """The end of lines that go, with the blank lines behind them if nothing is in front of them: they were the
        first of a block or of a cell. Of blank lines on both sides, the longer gap stays."""
        blank = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n))*")
        above = start - (2 if self._text[max(start - 2, 0) : start] == "\r\n" else 1)
        before = self._text[self._line_start(above) : above].strip() if start else ""
        begins = before.endswith(":") and "#" not in before
        if before and not begins and all(cell.start != start for cell in self._model.source.cells):
            return end
        found = blank.match(self._text, end)
        if found is not None and not before and start:
            gap = len(self._text[:start].splitlines()) - len(self._text[:start].rstrip().splitlines())
            found = re.compile(rf"(?:[ \t\f]*(?:\r\n|\r|\n)){{0,{gap}}}").match(self._text, end)
        crosses = found is None or self._model.source.objection([Edit(start, found.end(), "")]) is not None
        return end if found is None or crosses else found.end()

    def _holds_only(self, condition: cst.If, node: cst.CSTNode) -> bool:
        """Whether the body of a condition is the small statement that a node belongs to."""
        body: Sequence[cst.CSTNode] = condition.body.body
        if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine):
            body = body[0].body
        return len(body) == 1 and body[0] is self._model.small_statement(node)

    def _insert_among(self, parent: SmallParent, index: int, lines: Sequence[str]) -> Edit:
        """Statements before the `index`-th of those that share a line."""
        smalls = parent.body
        if isinstance(parent, cst.SimpleStatementSuite):
            if _are_simple(lines):
                if index < len(smalls):
                    return self.insert(self._model.span(smalls[index])[0], "".join(f"{line}; " for line in lines))
                return self.insert(self._model.span(smalls[-1])[1], "".join(f"; {line}" for line in lines))
            codes = [self._code(small) for small in smalls]
            return self._expanded(parent, [*codes[:index], *self._laid_out(lines, parent), *codes[index:]])
        indent = self.indentation(parent)
        block = self._block(lines, indent, self.unit(parent))
        if index == 0:
            return self.insert(self._line_start(self._model.span(smalls[0])[0]), block)
        if index == len(smalls):
            return self._insert_line(self._line_end(self._model.span(smalls[-1])[1]), block)
        start, end = self._model.span(smalls[index - 1])[1], self._model.span(smalls[index])[0]
        return Edit(start, end, self.newline + block + indent)

    def _suite_under(self, statements: Sequence[Sibling], header: str) -> list[Edit] | None:
        parent = self._parent(statements[0])
        if not isinstance(parent, SmallParent) or list(parent.body) != list(statements):
            return None
        if isinstance(parent, cst.SimpleStatementLine):
            return self.indent_under([parent], header)
        inner = self.unit(parent)
        return [self._expanded(parent, [header, *(inner + self._code(small) for small in parent.body)])]

    def _expanded(self, suite: cst.SimpleStatementSuite, lines: Sequence[str]) -> Edit:
        """A one-line suite as a block of the given lines."""
        start, end = self._model.span(suite)
        start = self._text.rindex(":", 0, start) + 1
        semicolon = re.compile(r"[ \t]*;").match(self._text, end)
        indent = self.indentation(suite) + self.unit(suite)
        return Edit(start, semicolon.end() if semicolon else end, "".join(self.newline + indent + x for x in lines))

    def _insert_line(self, offset: int, block: str) -> Edit:
        if offset == len(self._text) and not self._text.endswith(("\n", "\r")):
            return self.insert(offset, self.newline + block[: -len(self.newline)])
        return self.insert(offset, block)


def is_docstring(small: Small) -> bool:
    """Whether a statement is nothing but a string."""
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def _are_simple(lines: Sequence[str]) -> bool:
    return not any(hasattr(statement, "body") for statement in ast.parse("\n".join(lines)).body)
