"""Suppression comments: `# torchlint: ignore[MEM01, a-rule] reason`, `# torchlint: ignore-file[...]`, `# noqa: MEM01`.

A comment on any line of a logical line covers all of it; alone above a statement it covers the statement's logical
line, decorators included. Text inside strings is no comment.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from torchlint.diagnostics import DIAGNOSTICS
from torchlint.finding import Edit
from torchlint.rule import all_rules
from torchlint.source import Source

_IGNORE = re.compile(
    r"#\s*torchlint:\s*(?P<verb>ignore-file|ignore)\b(?P<list>\s*(?:\[(?P<codes>[^\]#]*)\]|\((?P<rounded>[^)#]*)\)|(?P<bare>[A-Z]+\d\d\b)))?(?P<rest>[^#]*)"
)
_NOQA = re.compile(
    r"#\s*noqa\b(?:\s*:\s*(?P<codes>[A-Z][A-Z0-9]*[0-9]+(?:[,\s]+[A-Z][A-Z0-9]*[0-9]+)*))?", re.IGNORECASE
)
_LAYOUT = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)


@dataclass(slots=True)
class Suppression:
    """A comment's span in the text and the lines it covers. `codes` is None where it names no rule and covers all;
    `reason` is what it says besides."""

    start: int
    end: int
    first_line: int
    last_line: int
    codes: tuple[str, ...] | None
    is_noqa: bool = False
    is_file: bool = False
    reason: str = ""
    used: set[str] = field(default_factory=set)

    def covers(self, line: int) -> bool:
        return self.is_file or self.first_line <= line <= self.last_line

    def matches(self, code: str) -> str | None:
        """The spelling under which the comment names the rule, "" where it names none and so covers all."""
        if self.codes is None:
            return ""
        return next((spelling for spelling in self.codes if code in codes_named(spelling)), None)

    def names(self, code: str) -> bool:
        return self.codes is not None and self.matches(code) is not None

    def unused(self, ran: set[str]) -> list[str] | None:
        """The names in the comment that suppress nothing, [] where it names none and suppresses nothing, else None.

        A name counts only where all that it stands for ran. `noqa` belongs to other tools too: only codes of torchlint
        are judged there.
        """
        if self.codes is None:
            every_rule_ran = ran >= all_rules().keys()
            return [] if every_rule_ran and not self.used and not self.is_noqa else None
        unused = [name for name in self.codes if name not in self.used and codes_named(name) <= ran]
        if self.is_noqa:
            unused = [name for name in unused if codes_named(name)]
        return unused or None


def codes_named(spelling: str) -> frozenset[str]:
    """The codes that a code, a family or a name in a comment stands for; empty where there is none."""
    known = _by_spelling(frozenset(all_rules()))
    return known.get(spelling) or known.get(spelling.upper(), frozenset())


@lru_cache(maxsize=1)
def _by_spelling(rules: frozenset[str]) -> dict[str, frozenset[str]]:
    names = {code: rule.name for code, rule in all_rules().items()} | {c: d.name for c, d in DIAGNOSTICS.items()}
    found = {spelling: frozenset({code}) for code, name in names.items() for spelling in (code, name)}
    for family in {code.rstrip("0123456789") for code in names}:
        found[family] = frozenset(code for code in names if code.rstrip("0123456789") == family)
    return found


def may_suppress(data: bytes) -> bool:
    """Whether there can be a suppression comment in a file."""
    return b"torchlint:" in data or b"noqa" in data.lower()


def suppressions(source: Source) -> list[Suppression]:
    """The comments of a file that suppress something, in the order of the text."""
    if not may_suppress(source.data):
        return []
    found: list[Suppression] = []
    for comment, first_line, last_line in _comments(source):
        start = source.line_starts[comment.start[0] - 1] + comment.start[1]
        found += _parse(comment.string, start, first_line, last_line)
    return found


def _parse(comment: str, start: int, first_line: int, last_line: int) -> Iterator[Suppression]:
    for match in _IGNORE.finditer(comment):
        listed_codes = match[_written_as(match)] or ""
        codes = tuple(code.strip() for code in listed_codes.split(",") if code.strip())
        span = (start + match.start(), start + len(comment[: match.end()].rstrip()))
        is_file = match["verb"] == "ignore-file"
        reason = match["rest"].strip()
        yield Suppression(*span, first_line, last_line, codes if match["list"] else None, False, is_file, reason)
    noqa = _NOQA.search(comment)
    if noqa is not None:
        listed = tuple(re.split(r"[,\s]+", noqa["codes"].upper())) if noqa["codes"] else None
        yield Suppression(start + noqa.start(), start + noqa.end(), first_line, last_line, listed, is_noqa=True)


def _written_as(match: re.Match[str]) -> str:
    """The group that holds the codes. `ignore MEM01` and `ignore(MEM01)` name a rule as well as brackets do."""
    return next((name for name in ("rounded", "bare") if match.groupdict().get(name) is not None), "codes")


def _comments(source: Source) -> Iterator[tuple[tokenize.TokenInfo, int, int]]:
    """Comments with the first and last line of the logical line that each belongs to."""
    waiting: list[tokenize.TokenInfo] = []
    first_line, is_decorator = 0, False
    for token in tokens(source):
        if token.type == tokenize.COMMENT:
            waiting.append(token)
        elif token.type == tokenize.NEWLINE:
            if is_decorator:
                first_line_of_next, is_decorator = first_line, False
                first_line = -first_line_of_next
                continue
            yield from ((comment, abs(first_line), token.start[0]) for comment in waiting)
            waiting, first_line = [], 0
        elif token.type not in _LAYOUT and first_line <= 0:
            is_decorator = token.string == "@"
            first_line = abs(first_line) or token.start[0]
    yield from ((comment, comment.start[0], comment.start[0]) for comment in waiting)


def tokens(source: Source) -> Iterator[tokenize.TokenInfo]:
    """Until the first that cannot be read."""
    numbers = range(1, len(source.line_starts) + 1)
    lines = iter([source.line(number) + "\n" for number in numbers])
    try:
        yield from tokenize.generate_tokens(lambda: next(lines, ""))
    except (tokenize.TokenError, SyntaxError):
        return


def removal(source: Source, suppression: Suppression, unused: Iterable[str]) -> Edit:
    """Takes the unused names out of the comment, or the comment out of the line when nothing is left of it."""
    text, drop = source.text, set(unused)
    kept = [code for code in suppression.codes or () if code not in drop]
    if kept:
        inside = text[suppression.start : suppression.end]
        match = (_NOQA if suppression.is_noqa else _IGNORE).match(inside)
        assert match is not None
        start, end = match.span(_written_as(match))
        return Edit(suppression.start + start, suppression.start + end, ", ".join(kept))
    start, end = suppression.start, suppression.end
    number = source.line_number(start)
    line_start = source.line_starts[number - 1]
    before = text[line_start:start]
    rest = source.line(number)[end - line_start :]
    if rest.strip():
        return Edit(start, end + len(rest) - len(rest.lstrip()), "")
    if before.strip():
        return Edit(line_start + len(before.rstrip()), end + len(rest), "")
    following = source.line_starts[number] if number < len(source.line_starts) else len(text)
    return Edit(line_start, following, "")
