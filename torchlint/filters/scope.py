"""Which findings of one file count: those of changed lines, and those that no baseline has."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from torchlint.diagnostics import SYNTAX_ERROR, TOO_COMPLEX, is_failure
from torchlint.finding import Finding, Suppressed, SuppressedBy
from torchlint.source import Source, UnreadableSourceError

_TOKEN = re.compile(
    r"""(?P<quote>\"{3}|'{3}|"|')(?P<inside>(?:\\.|(?!(?P=quote)).)*)(?P=quote)|\#[^\r\n]*|\\?\s+|\w+|.""",
    re.DOTALL,
)
_OF_THE_WHOLE_FILE = (SYNTAX_ERROR.code, TOO_COMPLEX.code)
_IN_THE_BASELINE = Suppressed(SuppressedBy.BASELINE)

Key = tuple[str, str, str]  # rule, qualified name of the function, digest of the statement


def key_of(finding: Finding) -> Key:
    """What a baseline knows a finding by."""
    return finding.code, finding.function or "", finding.statement


def digest(code: str) -> str:
    """Of a statement. What formatters change does not count: layout, comments, parentheses, quotes, final commas."""
    tokens = list(_tokens(code))
    kept = [token for token, following in zip(tokens, [*tokens[1:], ""]) if token != "," or following not in ")]}"]
    text = " ".join(token for token in kept if token not in "()")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _tokens(code: str) -> Iterator[str]:
    for match in _TOKEN.finditer(code):
        if match["quote"]:
            yield f'"{match["inside"]}"'
        elif match[0].strip("\\ \t\r\n\f") and match[0][0] != "#":
            yield match[0]


@dataclass(frozen=True, slots=True)
class Lines:
    """1-based lines of a text: `changed` are new or rewritten, `touched` also those beside deleted ones."""

    changed: frozenset[int]
    touched: frozenset[int]


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of a file: `data` is the file as it was read, `base` as it was before, None where it is new.

    Lines that fixes rewrite after that are changed where the lines that they take the place of were.
    """

    data: bytes
    base: bytes | None

    def concern(self, finding: Finding, source: Source) -> bool:
        """Whether a finding is about lines that changed: its own, one of its chain of facts, or any of the function
        that it speaks of."""
        lines = None if self.base is None else _lines_after(self.base, self.data, source)
        if lines is None:
            return True
        if finding.code in _OF_THE_WHOLE_FILE:
            return bool(lines.touched)
        own = [(finding.start, finding.end), *((step.start, step.end) for step in finding.chain)]
        if any(not lines.changed.isdisjoint(_numbers(span, source)) for span in own):
            return True
        return finding.extent is not None and not lines.touched.isdisjoint(_numbers(finding.extent, source))


def _numbers(span: tuple[int, int], source: Source) -> range:
    return range(source.line_number(span[0]), source.line_number(max(span[0], span[1] - 1)) + 1)


@lru_cache(maxsize=4)
def _lines_after(base: bytes, data: bytes, source: Source) -> Lines | None:
    """The lines of `source`, which is `data` after some fixes, that changed; None where it cannot be told."""
    before, read = _text_lines(base, source.path), _text_lines(data, source.path)
    if before is None or read is None:
        return None
    lines = changed_lines(before, read)
    return lines if source.data == data else _carried(lines, read, _split(source))


def _text_lines(data: bytes, path: Path) -> list[str] | None:
    try:
        return _split(Source.from_bytes(data, path))
    except UnreadableSourceError:
        return None


def _split(source: Source) -> list[str]:
    return [source.line(number) for number in range(1, len(source.line_starts) + 1)]


def changed_lines(before: Sequence[str], after: Sequence[str]) -> Lines:
    """The lines of `after` that are new, and those that stand beside a change."""
    changed: set[int] = set()
    touched: set[int] = set()
    for _, _, start, end in _differences(before, after):
        changed.update(range(start + 1, end + 1))
        touched.update(range(start + 1, end + 1) if end > start else (start, start + 1))
    return Lines(frozenset(changed), frozenset(touched))


def _carried(lines: Lines, before: Sequence[str], after: Sequence[str]) -> Lines:
    """The lines where they stand after further changes, which themselves do not count."""
    moved: dict[int, int] = {}
    position, shift = 0, 0
    rewritten: list[tuple[range, range]] = []
    for old_start, old_end, start, end in _differences(before, after):
        moved |= {number: number + shift for number in range(position + 1, old_start + 1)}
        rewritten.append((range(old_start + 1, old_end + 1), range(start + 1, end + 1)))
        position, shift = old_end, end - old_end
    moved |= {number: number + shift for number in range(position + 1, len(before) + 1)}

    def carried(numbers: frozenset[int]) -> frozenset[int]:
        kept = {moved[number] for number in numbers if number in moved}
        return frozenset(kept.union(*(new for old, new in rewritten if not numbers.isdisjoint(old))))

    return Lines(carried(lines.changed), carried(lines.touched))


def _differences(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Blocks of lines [i, j) that blocks [k, l) took the place of, in their order."""
    from torchlint.edits.line_matcher import LineMatcher

    for tag, *block in LineMatcher(before, after).get_opcodes():
        if tag != "equal":
            old_start, old_end, start, end = block
            yield old_start, old_end, start, end


@dataclass(frozen=True, slots=True)
class Scope:
    """`changes` is None where every line counts, `accepted` says how often a finding stands in the baseline."""

    changes: Changes | None = None
    accepted: Mapping[Key, int] | None = None

    def split(self, findings: Sequence[Finding], source: Source) -> tuple[list[Finding], list[Finding]]:
        """Findings that count, and those of the baseline, of findings in the order of the text. Failures always count.

        Where a statement has more findings than the baseline says, the last ones count.
        """
        left = Counter(self.accepted)
        kept: list[Finding] = []
        suppressed: list[Finding] = []
        for finding in findings:
            if is_failure(finding.code):
                kept.append(finding)
            elif left[key_of(finding)] > 0:
                left[key_of(finding)] -= 1
                suppressed.append(replace(finding, suppressed=_IN_THE_BASELINE))
            elif self.changes is None or self.changes.concern(finding, source):
                kept.append(finding)
        return kept, suppressed
