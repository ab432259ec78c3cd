"""Breaking lines that fixes have made longer than the lines of their project may be."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import accumulate, pairwise, zip_longest
from keyword import iskeyword
from typing import TYPE_CHECKING

from torchlint.edits.line_matcher import LineMatcher
from torchlint.finding import Edit

if TYPE_CHECKING:
    from torchlint.semantics.project import Project
    from torchlint.source import Source

_MOST_BREAKS = 3  # of one line
_CUSTOM = 2  # longer lines of a file without settings: so many, and nobody minds another
_FORMATTED_LIMIT = 100  # more than formatters are told: longer lines were never measured
_FEW = 8  # more characters on a line that was too long before
_LEAST = 15  # characters that a bracket holds are worth a line of their own
_DIRECTIVE = re.compile(
    r"#\s*(noqa|nosec|type:|pylint|pragma|fmt|yapf|isort|ruff|mypy|pyright|torchlint)", re.IGNORECASE
)
_SHORT_REST = re.compile(r"[\])},:;\s]*(\.\w+\([-\w.]*\)[\])},:;\s]*)?")
_ASSIGNED = re.compile(r"\s*(?:[\w.]+ = |return )(?=[\w.]+$)")
_CHAIN = 3  # calls, of which formatters give a line to each
_OPENING, _CLOSING = "([{", ")]}"
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_FORMATTED = (getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1))


def within_length(before: Source, after: Source, project: Project | None) -> Source:
    """`after` with lines broken that `before` does not have, and that are longer than both the project's limit and what
    they have come from. What no bracket holds stays as it is."""
    given = project.line_length(str(before.path)) if project is not None else None
    own = before.text.splitlines()
    limit = given or before.customary_length
    near = limit - _FEW if given is None and limit > _FORMATTED_LIMIT else limit
    for _ in range(_MOST_BREAKS):
        grown = list(_grown(own, after, limit, near))
        layout = layout_of(after.text) if grown and given is None else None
        rows = [row for row, line in grown if given or _stands_out(line, own) or _is_between_brackets(row, layout)]
        edits = _breaks(after, rows, limit, is_said=given is not None)
        if not edits or after.objection(edits) is not None:
            break
        after = after.apply(edits)
    return after


def closes_on_own_line(text: str) -> bool:
    """Whether the closing brackets of a file stand on lines of their own, as formatters put them."""
    layout = layout_of(text)
    return layout is not None and layout.closes_on_own_line


def _grown(own: Sequence[str], after: Source, limit: int, near: int) -> Iterator[tuple[int, str]]:
    """The lines that are too long, by their index, and longer than any of those whose place they take: a few characters
    more on a line that nobody broke, although it had no more room, are no reason to break it."""
    lines = _lines(after.text)
    stripped = [line.rstrip("\r\n") for line in lines]
    if all(len(line) <= limit for line in stripped):
        return
    for _, first, last, start, end in LineMatcher(own, stripped).get_opcodes():
        replaced = max(map(len, own[first:last]), default=0)
        replaced += _FEW if replaced > near else 0
        for row in range(start, end):
            if own[first:last] != stripped[start:end] and len(stripped[row]) > max(limit, replaced):
                yield row, stripped[row]


def _stands_out(line: str, own: Iterable[str]) -> bool:
    return sum(len(other) >= len(line) for other in own) < _CUSTOM


def _is_between_brackets(row: int, layout: Layout | None) -> bool:
    """Whether somebody has put what the line holds between the lines of its brackets: it was to be short."""
    bracket = layout.around.get(row) if layout is not None else None
    return bracket is not None and bracket.row == row - 1 and bracket.end_row == row + 1


@dataclass(slots=True)
class _Bracket:
    """`(`, `[` or `{`: offsets of itself, of what stands in it first, of the commas of its level and of its end."""

    start: int
    row: int
    depth: int
    is_index: bool
    is_group: bool  # around a part of an expression
    is_list: bool = True  # its commas belong to no `for` or `lambda`
    first: int = -1
    end: int = -1
    end_row: int = -1
    commas: list[tuple[int, int]] = field(default_factory=list)  # the end of each, and what follows it
    loops: list[tuple[int, int]] = field(default_factory=list)  # likewise what is in front of each `for`


@dataclass(frozen=True, slots=True)
class Layout:
    """The brackets of a text, and which one each of its rows begins in."""

    text: str
    starts: Sequence[int]
    brackets: Sequence[_Bracket]
    around: dict[int, _Bracket | None]
    comments: dict[int, int]  # where that of a row begins

    def line(self, row: int) -> str:
        return self.text[self.starts[row] : self.starts[row + 1]].rstrip("\r\n")

    def margin(self, row: int) -> str:
        line = self.line(row)
        return line[: len(line) - len(line.lstrip(" \t"))]

    @property
    def newline(self) -> str:
        found = re.search(r"\r\n|\r|\n", self.text)
        return found.group() if found else "\n"

    @property
    def closes_on_own_line(self) -> bool:
        """Whether calls are closed on lines of their own more often than lines are laid out under a bracket. Lists are
        closed so by nearly everybody."""
        closed = sum(self._is_laid_out_as_block(bracket) for bracket in self.brackets)
        under = {row for row, bracket in self.around.items() if bracket is not None and self._begins_beside(bracket)}
        return closed > len(under)

    def is_alone(self, bracket: _Bracket) -> bool:
        """Whether the closing bracket begins a line."""
        begin = self.starts[bracket.end_row]
        return bracket.end > 0 and bracket.end_row > bracket.row and not self.text[begin : bracket.end].strip(" \t)]}")

    def _is_laid_out_as_block(self, bracket: _Bracket) -> bool:
        is_call = self.text[bracket.start] == "(" and bracket.first >= self.starts[bracket.row + 1]
        return is_call and self.is_alone(bracket)

    def _begins_beside(self, bracket: _Bracket) -> bool:
        return bracket.first >= 0 and bracket.first < self.starts[bracket.row + 1]


def _breaks(source: Source, rows: Sequence[int], limit: int, is_said: bool) -> list[Edit]:
    """Of a limit that nobody has said, only what is code is held within it: a comment that reaches past it a little
    stands better where it stands."""
    layout = layout_of(source.text) if rows else None
    if layout is None:
        return []
    allowed = rows if is_said else [row for row in rows if not _is_past_by_comment(layout, row, limit)]
    found = (_break(layout, row, limit) for row in allowed)
    return [edit for edits in found for edit in edits]


def _is_past_by_comment(layout: Layout, row: int, limit: int) -> bool:
    code = layout.text[layout.starts[row] : layout.comments.get(row, layout.starts[row + 1])].rstrip()
    return row in layout.comments and len(code) <= limit and len(layout.line(row).rstrip()) <= limit + _FEW


def _break(layout: Layout, row: int, limit: int) -> list[Edit]:
    if row in layout.comments:
        return _comment_above(layout, row) if layout.comments[row] - layout.starts[row] <= limit else []
    ways = [_at_comma, _behind_bracket]
    if layout.closes_on_own_line:
        ways = [_chain, *reversed(ways)]
    return next((edits for way in (_one_a_line, *ways) if (edits := way(layout, row, limit))), [])


def _one_a_line(layout: Layout, row: int, limit: int) -> list[Edit]:
    """All that a bracket holds on a line between its own, as formatters do it."""
    bracket = layout.around.get(row)
    if bracket is None or bracket.row == row or not bracket.is_list or not layout.is_alone(bracket):
        return []
    start, line = layout.starts[row], layout.line(row)
    last = bracket.commas[-1][1] if bracket.commas else bracket.end
    if not start <= bracket.first < last < start + len(line) or bracket.end_row != row + 1:
        return []
    margin, end = layout.newline + layout.margin(row), start + len(line.rstrip())
    return [*(Edit(comma, behind, margin) for comma, behind in bracket.commas), Edit(end, end, ",")]


def _comment_above(layout: Layout, row: int) -> list[Edit]:
    """The code of the line is short enough by itself, and its comment can stand above it."""
    start, comment, line = layout.starts[row], layout.comments[row], layout.line(row)
    text, code = layout.text[comment : start + len(line)], layout.text[start:comment].rstrip()
    opened = any(bracket.row == row and bracket.end_row != row for bracket in layout.brackets)
    if layout.around.get(row) is not None or opened or _DIRECTIVE.match(text) or code.endswith((":", "\\")):
        return []
    margin = layout.margin(row)
    above = Edit(start + len(margin), start + len(margin), text.rstrip() + layout.newline + margin)
    return [above, Edit(start + len(code), start + len(line), "")]


def _chain(layout: Layout, row: int, limit: int) -> list[Edit]:
    """`x = torch.zeros(n).view(1, -1).repeat(n, 1)` between parentheses, with a line for each call."""
    start, line = layout.starts[row], layout.line(row).rstrip()
    calls = [bracket for bracket in layout.brackets if bracket.row == row and bracket.depth == 0]
    if len(calls) < _CHAIN or any(call.end_row != row for call in calls) or calls[-1].end != start + len(line) - 1:
        return []
    links = [layout.text[one.end + 1 : other.start] for one, other in pairwise(calls)]
    begin = _ASSIGNED.match(layout.text[start : calls[0].start])
    if begin is None or not all(re.fullmatch(r"\.\w+", link) for link in links):
        return []
    margin, places = layout.margin(row), [start + begin.end(), *(call.end + 1 for call in calls)]
    inner = margin + ("\t" if margin.endswith("\t") else " " * 4)
    if max(end - begin for begin, end in pairwise(places)) + len(inner) > limit:
        return []
    opened = [Edit(place, place, layout.newline + inner) for place in places[1:-1]]
    first, last = places[0], places[-1]
    return [
        Edit(first, first, f"({layout.newline}{inner}"),
        *opened,
        Edit(last, last, f"{layout.newline}{margin})"),
    ]


def _at_comma(layout: Layout, row: int, limit: int) -> list[Edit]:
    """Behind a comma of the outermost bracket where both halves fit, or before its `for`, the second half under the
    first."""
    start, line = layout.starts[row], layout.line(row).rstrip()
    found: list[tuple[int, int, int, str]] = []
    for bracket in layout.brackets:
        if bracket.row == row and bracket.end - bracket.first < _LEAST:
            continue  # a line for the `0` of `.movedim(-1, 0)`
        margin = _margin_in(layout, bracket, row)
        for end, behind in bracket.commas if bracket.is_list else bracket.loops:
            is_inside = start <= end < behind < start + len(line)
            if margin is not None and is_inside and max(end - start, len(margin) + start + len(line) - behind) <= limit:
                found.append((-bracket.depth, end, behind, margin))
    if not found:
        return []
    _, end, behind, margin = max(found)
    return [Edit(end, behind, layout.newline + margin)]


def _margin_in(layout: Layout, bracket: _Bracket, row: int) -> str | None:
    """Of a further line in a bracket of the row, where not much follows that, or in the one that the row begins in."""
    rest = layout.line(row)[bracket.end - layout.starts[row] :] if bracket.end_row == row else ""
    if bracket.row != row and not bracket.is_index:
        return layout.margin(row) if layout.around.get(row) is bracket else None
    if bracket.is_index or not _SHORT_REST.fullmatch(rest):
        return None
    return re.sub(r"[^\t]", " ", layout.text[layout.starts[row] : bracket.first])


def _behind_bracket(layout: Layout, row: int, limit: int) -> list[Edit]:
    """What the outermost bracket of the line holds, on a line of its own or on one for each; of what holds only a call
    that is too long itself, `cycle(Loader(...))`, what that holds."""
    inside = [bracket for bracket in layout.brackets if bracket.row == row and _is_worth_a_line(layout, bracket)]
    inside.sort(key=lambda bracket: (-bracket.depth, bracket.start), reverse=True)
    for bracket, within in zip_longest(inside, inside[1:]):
        edits = _opened(layout, bracket, row, limit)
        if edits or within is None or bracket.commas or within.end != bracket.end - 1:
            return edits
    return []


def _opened(layout: Layout, bracket: _Bracket, row: int, limit: int) -> list[Edit]:
    start, line = layout.starts[row], layout.line(row)
    outer, closes = layout.margin(row), layout.closes_on_own_line
    is_head = line.rstrip().endswith(":") and not closes
    inner = outer + ("\t" if outer.endswith("\t") else " " * 4) * (2 if is_head else 1)
    tail = len(line) - (bracket.end - start)
    content = len(inner) + bracket.end - bracket.first + (0 if closes else tail)
    if bracket.first - start > limit or len(outer) + tail > limit or line[bracket.first - start - 1].isspace():
        return []
    opened, closed = Edit(bracket.first, bracket.first, layout.newline + inner), Edit(bracket.end, bracket.end, "")
    if closes:
        closed = Edit(bracket.end, bracket.end, layout.newline + outer)
    if content <= limit:
        return [opened, *([closed] if closes else [])]
    parts = [bracket.first, *(behind for _, behind in bracket.commas), bracket.end]
    if not closes or not bracket.is_list or not bracket.commas:
        return []
    if max(end - begin for begin, end in pairwise(parts)) + len(inner) > limit:
        return []
    apart = [Edit(end, behind, layout.newline + inner) for end, behind in bracket.commas if behind < bracket.end]
    comma = "" if bracket.commas[-1][1] >= bracket.end else ","
    return [opened, *apart, Edit(bracket.end, bracket.end, comma + layout.newline + outer)]


def _is_worth_a_line(layout: Layout, bracket: _Bracket) -> bool:
    """Whether a bracket holds enough, is closed on its line, and has not much behind it."""
    row = bracket.row
    if bracket.end_row != row or bracket.is_index or bracket.end - bracket.first < _LEAST:
        return False
    rest = layout.line(row)[bracket.end - layout.starts[row] :]
    if bracket.is_group and not layout.closes_on_own_line and rest.startswith(")."):
        return False  # `(`, and below `a * b).sum()`
    return _SHORT_REST.fullmatch(rest) is not None


def _lines(text: str) -> list[str]:
    return [*StringIO(text, newline="")]


def layout_of(text: str) -> Layout | None:
    """None for what is no Python."""
    lines = _lines(text)
    starts = [*accumulate(map(len, lines), initial=0)]
    try:
        tokens = [*tokenize.generate_tokens(iter([*lines, ""]).__next__)]
    except (tokenize.TokenError, SyntaxError, StopIteration):
        return None
    return _Reader(text, starts).read(tokens)


@dataclass
class _Reader:
    text: str
    starts: list[int]
    brackets: list[_Bracket] = field(default_factory=list)
    stack: list[_Bracket] = field(default_factory=list)
    around: dict[int, _Bracket | None] = field(default_factory=dict)
    comments: dict[int, int] = field(default_factory=dict)
    pending: tuple[_Bracket, int] | None = None
    before: tokenize.TokenInfo | None = None
    formatted: int = 0

    def read(self, tokens: Iterable[tokenize.TokenInfo]) -> Layout:
        for token in tokens:
            self.formatted += (token.type == _FORMATTED[0]) - (token.type == _FORMATTED[1])
            if token.type == tokenize.COMMENT:
                self.comments[token.start[0] - 1] = self._offset(token.start)
            if token.type in _LAYOUT or token.type == tokenize.COMMENT:
                continue
            self._visit(token)
            self.before = token
        return Layout(self.text, self.starts, self.brackets, self.around, self.comments)

    def _offset(self, position: tuple[int, int]) -> int:
        return self.starts[position[0] - 1] + position[1]

    def _visit(self, token: tokenize.TokenInfo) -> None:
        row, start = token.start[0] - 1, self._offset(token.start)
        self.around.setdefault(row, self.stack[-1] if self.stack else None)
        is_mark = token.type == tokenize.OP and not self.formatted
        if self.pending is not None:
            bracket, comma = self.pending
            bracket.commas.append((comma + 1, start))
            self.pending = None
        if self.stack and self.stack[-1].first < 0:
            self.stack[-1].first = start
        if is_mark and token.string in _OPENING:
            self._open(token, row, start)
        elif is_mark and token.string in _CLOSING and self.stack:
            bracket = self.stack.pop()
            bracket.end, bracket.end_row = start, row
        elif is_mark and token.string == "," and self.stack:
            self.pending = self.stack[-1], start
        elif token.string in ("for", "lambda") and self.stack:
            self.stack[-1].is_list = False
            if token.string == "for" and self.before is not None:
                self.stack[-1].loops.append((self._offset(self.before.end), start))

    def _open(self, token: tokenize.TokenInfo, row: int, start: int) -> None:
        before = self.before
        is_value = before is not None and (
            before.string in (")", "]", "}")
            or before.type == tokenize.STRING
            or (before.type == tokenize.NAME and not iskeyword(before.string))
        )
        is_index, is_group = token.string == "[" and is_value, token.string == "(" and not is_value
        bracket = _Bracket(start, row, len(self.stack), is_index, is_group)
        self.brackets.append(bracket)
        self.stack.append(bracket)
