"""Which lines of two texts are the same ones."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import takewhile

_MOST_COMPARED = 2_000  # lines in one piece: beyond, lines that are often there are not compared with each other


class LineMatcher(SequenceMatcher[str]):
    """Matches lines between those that either text has only once, and in order ("patience diff").

    SequenceMatcher alone passes over lines that a file of some length has often, such as empty ones, or else takes the
    square of their number.
    """

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, "", "", autojunk=False)
        self.a, self.b = before, after
        self._blocks: list[Match] | None = None

    def get_matching_blocks(self) -> list[Match]:
        """The runs of lines that are the same, and an empty one at the end."""
        if self._blocks is None:
            self._blocks = [*_joined(self._runs()), Match(len(self.a), len(self.b), 0)]
        return self._blocks

    def _runs(self) -> Iterator[Match]:
        before, after = self.a, self.b
        head = _common(before, after)
        tail = _common(before[head:][::-1], after[head:][::-1])
        ends = len(before) - tail, len(after) - tail
        yield Match(0, 0, head)
        first, second = head, head
        anchors = _anchors(before[head : ends[0]], after[head : ends[1]])
        for here, there in [*((head + one, head + other) for one, other in anchors), ends]:
            if first < here and second < there:
                yield from _compared(before, after, (first, here), (second, there))
            if here < ends[0]:
                yield Match(here, there, 1)
            first, second = here + 1, there + 1
        yield Match(*ends, tail)


def _compared(
    before: Sequence[str], after: Sequence[str], first: tuple[int, int], second: tuple[int, int]
) -> Iterator[Match]:
    """The runs of lines that two parts have in common."""
    is_long = max(first[1] - first[0], second[1] - second[0]) > _MOST_COMPARED
    matcher = SequenceMatcher(None, before[slice(*first)], after[slice(*second)], autojunk=is_long)
    for match in matcher.get_matching_blocks():
        yield Match(first[0] + match.a, second[0] + match.b, match.size)


def _joined(runs: Iterator[Match]) -> Iterator[Match]:
    """Runs that go on in one another as one, and none that is empty."""
    last = Match(0, 0, 0)
    for run in runs:
        if (last.a + last.size, last.b + last.size) == (run.a, run.b):
            last = Match(last.a, last.b, last.size + run.size)
            continue
        if last.size:
            yield last
        last = run
    if last.size:
        yield last


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that either text has once, as many of them as stand in the same order."""
    counts, others = Counter(before), Counter(after)
    places = {line: place for place, line in enumerate(after) if others[line] == 1}
    unique = [(place, places[line]) for place, line in enumerate(before) if counts[line] == 1 and line in places]
    return _longest_rising(unique)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of pairs with rising first numbers in which the second ones rise, too."""
    ends: list[int] = []  # of rising parts of each length, the least second number at the end
    tops: list[int] = []  # and where its pair is
    before: list[int] = []
    for place, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(tops[length - 1] if length else -1)
        ends[length : length + 1], tops[length : length + 1] = [second], [place]
    found: list[tuple[int, int]] = []
    place = tops[-1] if tops else -1
    while place >= 0:
        found.append(pairs[place])
        place = before[place]
    return found[::-1]


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """How many lines two texts begin with are the same."""
    return sum(1 for _ in takewhile(lambda lines: lines[0] == lines[1], zip(first, second)))
