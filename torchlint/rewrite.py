"""Edits from LibCST nodes: a fixer says what to change, this module knows how the text around it is laid out.

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

from torchlint import spelling
from torchlint.finding import Edit
from torchlint.parallel_assignment import independent_pairs
from torchlint.rule import NoFixError
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BaseString,
    cst.BaseList,
    cst.BaseSet,
    cst.BaseDict,
    cst.Ellipsis,
)
_MARGIN = re.compile(r"[ \t\f]*")
_WORD = re.compile(r"\w")
_COMMENT_BEHIND_BRACKET = re.compile(r"[ \t,]*\)[^#\r\n]*#")

Small = cst.BaseSmallStatement
SmallParent = cst.SimpleStatementLine | cst.SimpleStatementSuite
Compound = cst.BaseCompoundStatement | cst.Else | cst.Finally | cst.ExceptHandler | cst.ExceptStarHandler
Bracketed = cst.Call | cst.Dict
Entry = cst.Arg | cst.BaseDictElement
Sibling = cst.BaseStatement | cst.BaseSmallStatement


class Rewriter:
    """Builds edits for one file. Offsets count characters of `model.source.text`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._text = model.source.text
        self.newline: str = model.module.default_newline

    # expressions

    def insert(self, offset: int, text: str) -> Edit:
        return Edit(offset, offset, text)

    def replace(self, node: cst.CSTNode, text: str) -> Edit:
        """Puts `text` in the place of a node and of its own parentheses; a keyword that touched them stays apart."""
        start, end = self._model.span(node)
        before, after = self._apart(start, text, end)
        return Edit(start, end, before + text + after)

    def wrap(self, node: cst.BaseExpression, before: str, after: str) -> list[Edit]:
        """`before` and `after` around an expression, as in `float(` and `)`."""
        start, end = self._model.span(node)
        space, _ = self._apart(start, before, start)
        return [self.insert(start, space + before), self.insert(end, after)]

    def method_call(self, node: cst.BaseExpression, suffix: str) -> list[Edit]:
        """`suffix`, as in `.detach()`, on the value of an expression, in parentheses where it is no atom."""
        if self._is_atom(node):
            return [self.insert(self._model.span(node)[1], suffix)]
        return self.wrap(node, "(", ")" + suffix)

    def add_argument(self, call: cst.Call, argument: str, others: Sequence[Edit] = ()) -> Edit:
        """One more argument at the end of a call, laid out like the others.

        It is for the caller to know that no `*` or `**` of the call can hold it already.
        others: edits of the same fix, which may make the line shorter.
        """
        if not call.args:
            return self.insert(self._model.span(call)[1] - len(self._closing(call)), argument)
        last = call.args[-1].value
        start, end = self._model.span(last)
        if isinstance(last, cst.GeneratorExp) and not self._text.startswith("(", start):
            return Edit(start, end, f"({self._text[start:end]}), {argument}")
        return self._append(call, call.args[-1], self._spaced(call, argument), others)

    def _spaced(self, call: cst.Call, argument: str) -> str:
        """`device = "cuda"` among arguments that are written like this."""
        equals = [arg.equal for arg in call.args if isinstance(arg.equal, cst.AssignEqual)]
        last = equals[-1] if equals else None
        if last is None or last.whitespace_before.empty or last.whitespace_after.empty:
            return argument
        return re.sub(r"^(\w+)=", r"\1 = ", argument)

    def around_only_argument(self, node: cst.BaseExpression, length: int) -> tuple[int, int] | None:
        """From bracket to bracket about the only argument of a call, where line breaks are all that stands between and
        its line has room for the `length` characters that the argument is going to have."""
        arg = self._model.parent(node)
        call = self._model.parent(arg) if isinstance(arg, cst.Arg) and arg.keyword is None and not arg.star else None
        if not isinstance(call, cst.Call) or len(call.args) != 1:
            return None
        first, last = self._model.span(node)
        start = self._text.index("(", self._model.span(call.func)[1]) + 1
        end = self._text.find(")", last)
        before, after = self._text[start:first], self._text[last:end]
        if not ("\n" in before and before.isspace()) or after.strip(" \t\r\n,"):
            return None
        rest = self._text[end : self._line_end(end)].rstrip()
        room = self._model.line_length - (start - self._line_start(start)) - len(rest)
        return (start, end) if length <= room else None

    def add_entry(self, literal: cst.Dict, entry: str) -> Edit:
        """One more entry at the end of a dict that is not empty, laid out like the others."""
        return self._append(literal, literal.elements[-1], entry)

    def _append(self, container: Bracketed, last: Entry, text: str, others: Sequence[Edit] = ()) -> Edit:
        """`text` after the last argument or entry, and after the comment on its line."""
        end = self._model.span(last.value)[1]
        trailing = self._comma_after(end)
        separator = "," if trailing is None else ""
        own_line = self._own_line(container, last)
        at = end if trailing is None else trailing
        if own_line is None:
            space = self._space_before(text, container, last, others)
            return self.insert(at, f"{separator}{space}{text}" + ("" if trailing is None else ","))
        if isinstance(last, cst.Arg) and last.keyword is not None and self._has_comment_behind_bracket(end):
            start = self._model.span(last)[0]
            return self.insert(start, f"{text},{self.newline}{own_line}")
        rest = self._rest_of_line(at)
        closing = "" if trailing is None else ","
        return Edit(at, at + len(rest), f"{separator}{rest}{self.newline}{own_line}{text}{closing}")

    def replace_argument(self, argument: cst.Arg | cst.DictElement, value: str) -> Edit:
        """Another value for an argument of a call or an entry of a dict; its keyword stays."""
        return self.replace(argument.value, value)

    def remove_argument(self, call: cst.Call, argument: cst.Arg) -> Edit:
        """Takes an argument out of a call, with one of the commas beside it."""
        index = [*call.args].index(argument)
        start = self._model.span(argument)[0]
        if index + 1 < len(call.args):
            return Edit(start, self._model.span(call.args[index + 1])[0], "")
        end = self._model.span(argument.value)[1]
        if index:
            return Edit(self._model.span(call.args[index - 1].value)[1], end, "")
        return Edit(start, self._comma_after(end) or end, "")

    def string(self, content: str) -> str:
        """A string in the quotes that the file prefers."""
        quote = self._model.once(_quote)
        return f"{quote}{content}{quote}"

    # statements

    def indentation(self, node: cst.CSTNode) -> str:
        """The white space before the statement that a node belongs to; of a one-line suite, of its compound."""
        place: cst.CSTNode = self._place(node)
        while isinstance(place, Small):
            parent = self._parent(place)
            place = parent if isinstance(parent, cst.SimpleStatementLine) else self._place(self._parent(parent))
        return self._margin(self._first_token(place))

    def insert_before(self, node: cst.CSTNode, *lines: str) -> Edit:
        """Statements before the one that a node belongs to. In a one-line suite they stay in the suite."""
        place = self._place(node)
        if isinstance(place, Small):
            parent, index = self._among(place)
            return self._insert_among(parent, index, lines)
        return self.insert(self._line_start(self._first_token(place)), self._block(lines, self.indentation(place)))

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
        return self._insert_line(end, lines, indent)

    def prepend_to_body(self, compound: Compound, *lines: str) -> Edit:
        """Statements at the beginning of a body, after its docstring."""
        body = compound.body
        documented = isinstance(compound, (cst.FunctionDef, cst.ClassDef))
        if isinstance(body, cst.SimpleStatementSuite):
            return self._insert_among(body, int(documented and _is_docstring(body.body[0])), lines)
        first = body.body[0]
        indent = self.indentation(first)
        if documented and isinstance(first, cst.SimpleStatementLine) and _is_docstring(first.body[0]):
            return self._insert_among(first, 1, lines)
        start = self._line_start(self._first_token(first))
        for _ in getattr(first, "leading_lines", ()):
            start = self._line_start(start - (2 if self._text.endswith("\r\n", 0, start) else 1))
        return self.insert(start, self._block(lines, indent))

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

    def remove_clause(self, block: cst.IndentedBlock) -> Edit | None:
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

    def _past_blank_lines(self, start: int, end: int) -> int:
        """The end of lines that go, with the blank lines behind them if there are some in front of them as well."""
        blank = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n))*")
        above = start - (2 if self._text[max(start - 2, 0) : start] == "\r\n" else 1)
        if not start or self._text[self._line_start(above) : above].strip():
            return end
        found = blank.match(self._text, end)
        crosses = found is None or self._model.source.objection([Edit(start, found.end(), "")]) is not None
        return end if found is None or crosses else found.end()

    def remove_with_condition(self, node: cst.CSTNode) -> Edit | None:
        """Takes out a simple statement, and the `if` around it that is there for nothing else."""
        condition = next((above for above in self._model.ancestors(node) if isinstance(above, cst.If)), None)
        if condition is not None and condition.orelse is None and self._holds_only(condition, node):
            start, end = self._model.span(condition)
            outer = self._model.parent(condition)
            alone = not isinstance(outer, (cst.IndentedBlock, cst.Module)) or len(outer.body) == 1
            if not alone and "#" not in self._text[start : self._line_end(end)]:
                return Edit(self._line_start(start), self._line_end(end), "")
        return self.remove_statement(node)

    def _holds_only(self, condition: cst.If, node: cst.CSTNode) -> bool:
        """Whether the body of a condition is the small statement that a node belongs to."""
        body: Sequence[cst.CSTNode] = condition.body.body
        if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine):
            body = body[0].body
        return len(body) == 1 and body[0] is self._model.small_statement(node)

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
        edits = [self.insert(start, self._block([header], indent))]
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

    def name_for(self, qualified: str, at: cst.CSTNode) -> tuple[str, list[Edit]]:
        """How `torch.no_grad` is written at a place, and the import that this needs, if any.

        Raises NoFixError where the names that could be used mean something else at that place.
        """
        name = self.known_name(qualified, at)
        if name is not None:
            return name, []
        package = qualified.partition(".")[0]
        if not spelling.is_free(self._model, package, at):
            raise NoFixError(f"`{package}` is not imported there, and its name is taken")
        return qualified, [self._import(package)]

    def known_name(self, qualified: str, at: cst.CSTNode) -> str | None:
        """How `torch.no_grad` is written at a place without another import."""
        return spelling.spelled(self._model, qualified, at)

    def assign_apart(self, assign: cst.Assign) -> list[Edit] | None:
        """`a, b = f(a), g(b)` as `a = f(a)` and `b = g(b)`, where the order makes no difference; None elsewhere.

        The edits leave the values as they are, for others of the same fix to change.
        """
        line = self._parent(assign)
        pairs = independent_pairs(assign)
        if pairs is None or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return None
        start, end = self._model.span(assign)
        first = self._model.span(pairs[0][1])[0]
        if "#" in self._text[start:end]:
            return None
        edits = [Edit(start, first, f"{self._code(pairs[0][0])} = ")]
        for (_, before), (target, value) in pairwise(pairs):
            head = f"{self.newline}{self.indentation(line)}{self._code(target)} = "
            edits.append(Edit(self._model.span(before)[1], self._model.span(value)[0], head))
        return [*edits, Edit(self._model.span(pairs[-1][1])[1], end, "")]

    def moved_left(self, node: cst.BaseExpression, columns: int) -> list[Edit]:
        """Takes columns off the further lines of an expression, where these are laid out under its first one; fewer
        than none are put in front of them."""
        start, end = self._model.span(node)
        lines = self._lines_outside_strings([node], start, end)[1:]  # type: ignore[list-item]
        column = start - self._line_start(start)
        margins = [
            self._margin(line + len(self._text[line:end]) - len(self._text[line:end].lstrip(" \t"))) for line in lines
        ]
        if any("\t" in margin or len(margin) < column for margin in margins):
            return []
        if columns < 0:
            return [self.insert(line, " " * -columns) for line in lines]
        return [Edit(line, line + columns, "") for line in lines] if columns else []

    def comments(self, node: cst.CSTNode) -> str:
        """The comments on the lines of a statement and right above it, which a fix may leave behind as untrue."""
        place = self._model.statement(node)
        start, end = self._line_start(self._model.span(place)[0]), self._line_end(self._model.span(place)[1])
        above = re.compile(r"(?:[ \t\f]*#[^\r\n]*(?:\r\n|\r|\n))+\Z").search(self._text[:start])
        beside = re.compile(r"#[^\r\n]*").findall(self._text[start:end])
        return (above.group() if above is not None else "") + "\n".join(beside)

    # layout

    def _import(self, package: str) -> Edit:
        line = f"import {package}"
        before, after = spelling.neighbours_of_import(self._model.module, package)
        if before is not None:
            return self.insert_after(before, line)
        if after is not None:
            beside = spelling.is_of_standard_library(after) or spelling.is_part(after, package)
            return self.insert_before(after, line, *([] if beside else [""]))
        last = spelling.last_import(self._model.module)
        if last is not None:
            return self.insert_after(last, line)
        body = self._model.module.body
        first = body[0] if body else None
        if isinstance(first, cst.SimpleStatementLine) and _is_docstring(first.body[0]):
            return self._insert_among(first, 1, ["", line])
        if first is None:
            return self.insert(len(self._text), line + self.newline)
        return self.insert_before(first, line, "")

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
        if index == 0:
            return self.insert(self._line_start(self._model.span(smalls[0])[0]), self._block(lines, indent))
        if index == len(smalls):
            return self._insert_line(self._line_end(self._model.span(smalls[-1])[1]), lines, indent)
        start, end = self._model.span(smalls[index - 1])[1], self._model.span(smalls[index])[0]
        return Edit(start, end, self.newline + self._block(lines, indent) + indent)

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

    def _insert_line(self, offset: int, lines: Sequence[str], indent: str) -> Edit:
        block = self._block(lines, indent)
        if offset == len(self._text) and not self._text.endswith(("\n", "\r")):
            return self.insert(offset, self.newline + block[: -len(self.newline)])
        return self.insert(offset, block)

    def _block(self, lines: Sequence[str], indent: str) -> str:
        unit = self._unit_beside(indent)
        return "".join((indent + _in_units(line, unit) if line else "") + self.newline for line in lines)

    def _laid_out(self, lines: Sequence[str], near: cst.CSTNode) -> list[str]:
        unit = self.unit(near)
        return [_in_units(line, unit) for line in lines]

    def unit(self, node: cst.CSTNode) -> str:
        """One level of indentation, as it is at a node."""
        return self._unit_beside(self.indentation(node))

    def _unit_beside(self, indent: str) -> str:
        """One level of indentation, as the file has it; among tabs, a tab."""
        default = self._model.module.default_indent
        return "\t" if indent.strip(" ") and not default.strip(" ") else default

    def _own_line(self, container: Bracketed, last: Entry) -> str | None:
        """The margin for one more argument or entry, where the last one stands on a line of its own."""
        start = self._model.span(last)[0]
        margin = self._margin(start)
        if self._line_start(start) + len(margin) != start:
            return None
        opening, end = self._model.span(container)
        is_broken = self._line_start(opening) != self._line_start(start)
        return margin if is_broken and not self._is_pushed_down(container, last, end) else None

    def _is_pushed_down(self, container: Bracketed, last: Entry, end: int) -> bool:
        """`x.to(` above `device) for x in batch`: the line was too long, and no column of arguments was begun."""
        entries = container.args if isinstance(container, cst.Call) else container.elements
        return len(entries) == 1 and not self._text[self._model.span(last)[1] : end].strip(")]} ")

    def _space_before(self, text: str, container: Bracketed, last: Entry, others: Sequence[Edit]) -> str:
        """What stands before one more argument or entry on the line of the last one: a space, or a new line under the
        first one of its line where the old line would be too long and ends with the call."""
        end, limit = self._model.span(last)[1], self._model.line_length
        line_start, line_end = self._line_start(end), self._line_end(end)
        length = len(self._text[line_start:line_end].rstrip())
        added = [(edit.start, len(edit.text) - (edit.end - edit.start)) for edit in others]
        growth = len(text) + 2 + sum(size for start, size in added if line_start <= start < line_end)
        if length + growth <= limit or not self._ends_line(container):
            return " "
        first = container.args[0] if isinstance(container, cst.Call) else container.elements[0]
        opening = self._model.span(first)[0]
        if self._line_start(opening) == line_start:
            margin = re.sub(r"[^\t]", " ", self._text[line_start:opening])
            width = len(margin) + sum(size for start, size in added if line_start <= start < opening)
            margin = margin.ljust(width)[:width]
        else:
            margin = self._margin(end)
        return self.newline + margin if len(margin) + len(text) + 1 <= limit else " "

    def _ends_line(self, container: Bracketed) -> bool:
        """Whether only closing brackets follow; in a formatted string no line ends before Python 3.12."""
        end = self._model.span(container)[1]
        rest = self._text[end : self._line_end(end)]
        formatted = any(isinstance(outer, cst.FormattedStringExpression) for outer in self._model.ancestors(container))
        return not formatted and re.fullmatch(r"[)\]},:\s]*", rest) is not None

    def _has_comment_behind_bracket(self, end: int) -> bool:
        """Whether the line of the last argument closes the call, and a comment follows."""
        return _COMMENT_BEHIND_BRACKET.match(self._text, end) is not None

    def _comma_after(self, offset: int) -> int | None:
        """The offset behind the comma that follows, past white space and comments."""
        match = re.compile(r"(?:\s|\\|#[^\r\n]*)*,").match(self._text, offset)
        return match.end() if match else None

    def _rest_of_line(self, offset: int) -> str:
        """A comment, and the white space before it, that ends the line of an offset."""
        match = re.compile(r"[ \t\f]*#[^\r\n]*").match(self._text, offset)
        return match.group() if match else ""

    def _closing(self, call: cst.Call) -> str:
        """The closing parenthesis of the arguments, and those around the call."""
        start, end = self._model.span(call)
        for _ in call.rpar:
            end = self._text.rindex(")", start, end)
        return self._text[self._text.rindex(")", start, end) : self._model.span(call)[1]]

    def _apart(self, start: int, text: str, end: int) -> tuple[str, str]:
        """A space before and behind `text` where it would otherwise grow together with a word beside it."""
        left = start > 0 and bool(_WORD.match(self._text[start - 1])) and bool(_WORD.match(text[:1]))
        right = end > start and bool(_WORD.match(text[-1:])) and bool(_WORD.match(self._text[end : end + 1]))
        return " " * left, " " * right

    def _is_atom(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.GeneratorExp):
            return self._text.startswith("(", self._model.span(node)[0])
        return isinstance(node, _ATOMS) or bool(node.lpar)

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

    def _code(self, node: cst.CSTNode) -> str:
        start, end = self._model.span(node)
        return self._text[start:end]

    def _margin(self, offset: int) -> str:
        match = _MARGIN.match(self._text, self._line_start(offset), offset)
        return match.group() if match else ""

    def _line_start(self, offset: int) -> int:
        return max(self._text.rfind("\n", 0, offset), self._text.rfind("\r", 0, offset)) + 1

    def _line_end(self, offset: int) -> int:
        """The offset behind the line end that follows, past a comment and escaped line ends."""
        match = re.compile(r"(?:\\(?:\r\n|\r|\n)|[^#\r\n\\])*(?:#[^\r\n]*)?(?:\r\n|\r|\n)?").match(self._text, offset)
        return match.end() if match else offset

    def _comments_of_block(self, offset: int, indent: str) -> int:
        """Past the comment lines after `offset` that stand deeper than `indent`."""
        comment = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n))*" + re.escape(indent) + r"[ \t\f]+#[^\r\n]*(?:\r\n|\r|\n)?")
        while match := comment.match(self._text, offset):
            offset = match.end()
        return offset

    def _lines_outside_strings(self, statements: Sequence[Sibling], start: int, end: int) -> list[int]:
        """Offsets of the lines in [start, end) that hold something and do not begin inside a string."""
        strings = [
            self._model.span(node)
            for root in statements
            for node in walk(root)
            if isinstance(node, cst.BaseString) and not isinstance(node, cst.ConcatenatedString)
        ]
        begins = [start, *(match.end() for match in re.compile(r"\r\n|\r|\n").finditer(self._text, start, end))]
        return [
            line
            for line in begins
            if line < end
            and not re.compile(r"[ \t\f]*(?:[\r\n]|$)").match(self._text, line)
            and not any(first < line < last for first, last in strings)
        ]


def _quote(model: Model) -> str:
    """The quotes that most strings of a file have, or double ones."""
    strings = [node for node in model.nodes_of(cst.SimpleString) if isinstance(node, cst.SimpleString)]
    single = sum(string.quote == "'" for string in strings)
    return "'" if single > sum(string.quote == '"' for string in strings) else '"'


def _is_docstring(small: Small) -> bool:
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


def _are_simple(lines: Sequence[str]) -> bool:
    return not any(hasattr(statement, "body") for statement in ast.parse("\n".join(lines)).body)


def _in_units(line: str, unit: str) -> str:
    bare = line.lstrip(" ")
    return unit * ((len(line) - len(bare)) // 4) + bare
