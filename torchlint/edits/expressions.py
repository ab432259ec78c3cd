"""Edits of expressions: what stands around a value, arguments of calls and entries of dicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.layout import CodeLayout
from torchlint.edits.line_breaking import closes_on_own_line
from torchlint.finding import Edit

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
_SHORTEST_LIMIT = 79  # characters of a line that a formatter is told
_WORD = re.compile(r"\w")
_COMMENT_BEHIND_BRACKET = re.compile(r"[ \t,]*\)[^#\r\n]*#")

Bracketed = cst.Call | cst.Dict
Entry = cst.Arg | cst.BaseDictElement


class ExpressionEdits(CodeLayout):
    """Builds edits of expressions in one file, which follow how the text around them is laid out."""

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

    def add_entry(self, literal: cst.Dict, entry: str) -> Edit:
        """One more entry at the end of a dict that is not empty, laid out like the others."""
        return self._append(literal, literal.elements[-1], entry)

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

    def string(self, content: str, like: cst.CSTNode | None = None) -> str:
        """A string in the quotes of another one, or in those that the file prefers."""
        is_plain = isinstance(like, cst.SimpleString) and len(like.quote) == 1
        quote: str = like.quote if isinstance(like, cst.SimpleString) and is_plain else self._model.once(_quote)
        return f"{quote}{content}{quote}"

    def moved_left(self, node: cst.BaseExpression, columns: int) -> list[Edit]:
        """Takes columns off the further lines of an expression, where these are laid out under its first one; fewer
        than none are put in front of them."""
        return self._moved_left(node, *self._model.span(node), columns)

    def arguments_moved_left(self, call: cst.Call, columns: int) -> list[Edit]:
        """Likewise the further lines of a call whose arguments are laid out under the first of them, on the line of
        what is called."""
        if not call.args:
            return []
        begin, start = self._model.span(call.func)[1], self._model.span(call.args[0])[0]
        if "\n" in self._text[begin:start] or "\r" in self._text[begin:start]:
            return []
        return self._moved_left(call, start, self._model.span(call)[1], columns)

    def _moved_left(self, node: cst.BaseExpression, start: int, end: int, columns: int) -> list[Edit]:
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

    def _append(self, container: Bracketed, last: Entry, text: str, others: Sequence[Edit] = ()) -> Edit:
        """`text` after the last argument or entry, and after the comment on its line."""
        end = self._model.span(last.value)[1]
        trailing = self._comma_after(end)
        separator = "," if trailing is None else ""
        own_line = self._own_line(container, last, others)
        if trailing is None and self._is_filled(container) and self._fits_behind(text, container, others):
            own_line = None
        at = end if trailing is None else trailing
        if trailing is None and self._is_one_line_of_its_own(container, own_line is None):
            return self.insert(at, f", {text}")
        if own_line is None:
            space = self._space_before(text, container, last, others)
            return self.insert(at, f"{separator}{space}{text}" + ("" if trailing is None else ","))
        if isinstance(last, cst.Arg) and last.keyword is not None and self._has_comment_behind_bracket(end):
            start = self._model.span(last)[0]
            return self.insert(start, f"{text},{self.newline}{own_line}")
        rest = self._rest_of_line(at)
        is_block = self._is_only_block(container, last) and self._model.once(_is_formatted)
        closing = "" if trailing is None and not is_block else ","
        return Edit(at, at + len(rest), f"{separator}{rest}{self.newline}{own_line}{text}{closing}")

    def _spaced(self, call: cst.Call, argument: str) -> str:
        """`device = "cuda"` among arguments that are written like this."""
        equals = [arg.equal for arg in call.args if isinstance(arg.equal, cst.AssignEqual)]
        last = equals[-1] if equals else None
        if last is None or last.whitespace_before.empty or last.whitespace_after.empty:
            return argument
        return re.sub(r"^(\w+)=", r"\1 = ", argument)

    def _own_line(self, container: Bracketed, last: Entry, others: Sequence[Edit]) -> str | None:
        """The margin for one more argument or entry, where the last one stands on a line of its own."""
        start = self._model.span(last)[0]
        margin = self._margin(start)
        if self._line_start(start) + len(margin) != start:
            return None
        opening, end = self._model.span(container)
        is_broken = self._line_start(opening) != self._line_start(start)
        if not is_broken or self._is_pushed_down(container, last, end):
            return None
        moved = sum(
            len(edit.text) - (edit.end - edit.start) for edit in others if start - len(margin) <= edit.start < start
        )
        return margin + " " * moved if moved > 0 else margin[: len(margin) + moved]

    def _is_filled(self, container: Bracketed) -> bool:
        """Whether lines hold several arguments or entries where there is room for them; those of the first line alone
        are no sign where more lines hold one each."""
        entries = container.args if isinstance(container, cst.Call) else container.elements
        lines = [self._line_start(self._model.span(entry)[0]) for entry in entries]
        further = [line for line in lines if line != lines[0]]
        lines = further if len(further) > 1 else lines
        return len(set(lines)) < len(lines)

    def _fits_behind(self, text: str, container: Bracketed, others: Sequence[Edit]) -> bool:
        """Whether one more argument has room on the last line of a call that ends its line."""
        end = self._model.span(container)[1]
        line_start, line_end = self._line_start(end), self._line_end(end)
        moved = sum(len(edit.text) - (edit.end - edit.start) for edit in others if line_start <= edit.start < line_end)
        length = len(self._text[line_start:line_end].rstrip()) + moved + len(text) + 2
        return length <= self._model.line_length and self._ends_line(container, others)

    def _is_one_line_of_its_own(self, container: Bracketed, is_shared: bool) -> bool:
        """Whether the arguments or entries share the line below the opening bracket, and no other is there. A single
        one has it where a formatter has put it there for its length."""
        entries = container.args if isinstance(container, cst.Call) else container.elements
        lines = {self._line_start(at) for entry in entries for at in self._model.span(entry)}
        if len(lines) > 1 or not self._is_below(container):
            return False
        return is_shared if len(entries) > 1 else self._is_put_below(container)

    def _is_only_block(self, container: Bracketed, last: Entry) -> bool:
        """Whether the only argument or entry is laid out over lines of its own."""
        entries = container.args if isinstance(container, cst.Call) else container.elements
        start, end = self._model.span(last)
        return len(entries) == 1 and "\n" in self._text[start:end] and self._is_below(container)

    def _is_below(self, container: Bracketed) -> bool:
        """Whether the arguments or entries stand on lines between those of the brackets."""
        entries = container.args if isinstance(container, cst.Call) else container.elements
        opening, end = self._model.span(container)
        first, last = self._model.span(entries[0])[0], self._model.span(entries[-1])[1]
        opened = self._line_start(opening)
        if isinstance(container, cst.Call):
            opened = self._line_start(self._model.span(container.func)[1])
        return opened != self._line_start(first) and self._line_start(end - 1) != self._line_start(last)

    def _is_put_below(self, container: Bracketed) -> bool:
        start, end = self._model.span(container)
        lines = [line.strip() for line in self._text[self._line_start(start) : self._line_end(end)].splitlines()]
        too_long = len(self._margin(start)) + sum(map(len, lines)) > _SHORTEST_LIMIT
        return too_long and "#" not in "".join(lines) and self._model.once(_is_formatted)

    def _is_pushed_down(self, container: Bracketed, last: Entry, end: int) -> bool:
        """`x.to(` above `device) for x in batch`: the line was too long, and no column of arguments was begun."""
        entries = container.args if isinstance(container, cst.Call) else container.elements
        return len(entries) == 1 and not self._text[self._model.span(last)[1] : end].strip(")]} ")

    def _space_before(self, text: str, container: Bracketed, last: Entry, others: Sequence[Edit]) -> str:
        """What stands before one more argument or entry on the line of the last one: a space, or a new line under the
        first one of its line where the old line would be too long and ends with the call. In a file that closes its
        brackets on lines of their own, the line is broken once all fixes are made."""
        end, limit = self._model.span(last)[1], self._model.line_length
        line_start, line_end = self._line_start(end), self._line_end(end)
        length = len(self._text[line_start:line_end].rstrip())
        added = [(edit.start, len(edit.text) - (edit.end - edit.start)) for edit in others]
        growth = len(text) + 2 + sum(size for start, size in added if line_start <= start < line_end)
        if length + growth <= limit or not self._ends_line(container) or self._model.once(_is_formatted):
            return " "
        entries = container.args if isinstance(container, cst.Call) else container.elements
        opening = self._model.span(entries[0])[0]
        if self._line_start(opening) == line_start:
            margin = re.sub(r"[^\t]", " ", self._text[line_start:opening])
            width = len(margin) + sum(size for start, size in added if line_start <= start < opening)
            margin = margin.ljust(width)[:width]
            if width * 3 > limit * 2 and len(entries) == 1:
                return " "  # far to the right, where no column of arguments begins
        else:
            margin = self._margin(end)
        return self.newline + margin if len(margin) + len(text) + 1 <= limit else " "

    def _ends_line(self, container: Bracketed, others: Sequence[Edit] = ()) -> bool:
        """Whether only closing brackets follow; in a formatted string no line ends before Python 3.12."""
        end = self._model.span(container)[1]
        gone = {at for edit in others if not edit.text for at in range(edit.start, edit.end)}
        rest = "".join(self._text[at] for at in range(end, self._line_end(end)) if at not in gone)
        formatted = any(isinstance(outer, cst.FormattedStringExpression) for outer in self._model.ancestors(container))
        return not formatted and re.fullmatch(r"[)\]},:\s]*", rest) is not None

    def _has_comment_behind_bracket(self, end: int) -> bool:
        """Whether the line of the last argument closes the call, and a comment follows."""
        return _COMMENT_BEHIND_BRACKET.match(self._text, end) is not None

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


def _is_formatted(model: Model) -> bool:
    return closes_on_own_line(model.source.text)


def _quote(model: Model) -> str:
    """The quotes that most strings of a file have, or double ones."""
    strings = [node for node in model.nodes_of(cst.SimpleString) if isinstance(node, cst.SimpleString)]
    single = sum(string.quote == "'" for string in strings)
    return "'" if single > sum(string.quote == '"' for string in strings) else '"'
