"""Lines of two texts are matched as a reader would, in files of any length."""

from __future__ import annotations

import difflib
from random import Random

import pytest

from torchlint.edits.line_matcher import LineMatcher
from torchlint.fixing.passes import Fixed
from torchlint.output.changes import unified_diff
from torchlint.source import Source


def _changed(before: list[str], after: list[str]) -> list[tuple[list[str], list[str]]]:
    opcodes = LineMatcher(before, after).get_opcodes()
    return [(before[a:b], after[c:d]) for tag, a, b, c, d in opcodes if tag != "equal"]


def test_a_line_that_the_file_has_often_is_no_change() -> None:
    before = ["def f():", "", "    pass", ""] * 100 + ["x = 1", "", "y = 2"]
    after = [*before[:-3], "x = 3", "", "y = 4"]
    assert _changed(before, after) == [(["x = 1"], ["x = 3"]), (["y = 2"], ["y = 4"])]


def test_lines_that_moved_are_matched_once() -> None:
    before, after = ["a", "b", "c", "d", "e"], ["d", "a", "b", "c", "e"]
    assert _changed(before, after) == [([], ["d"]), (["d"], [])]


@pytest.mark.parametrize("seed", range(40))
def test_blocks_are_runs_of_the_same_lines_in_order(seed: int) -> None:
    rng = Random(seed)
    before = [rng.choice("abcdefgh") * rng.randint(1, 3) for _ in range(rng.randint(0, 40))]
    after = [line for line in before if rng.random() < 0.8]
    for _ in range(rng.randint(0, 6)):
        after.insert(rng.randint(0, len(after)), rng.choice("abxyz"))
    blocks = LineMatcher(before, after).get_matching_blocks()
    assert blocks[-1] == (len(before), len(after), 0)
    assert all(size > 0 for _, _, size in blocks[:-1])
    end = (0, 0)
    for a, b, size in blocks:
        assert a >= end[0]
        assert b >= end[1]
        assert before[a : a + size] == after[b : b + size]
        end = (a + size, b + size)
    assert _applied(before, after) == after


def _applied(before: list[str], after: list[str]) -> list[str]:
    result: list[str] = []
    for tag, a, b, c, d in LineMatcher(before, after).get_opcodes():
        result += before[a:b] if tag == "equal" else after[c:d]
    return result


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "a\n"),
        ("a\n", ""),
        ("a\nb\nc\n", "a\nc\n"),
        ("a\nb\n", "a\nb\nc\n"),
        ("a\nb", "a\nc"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("".join(f"{n}\n" for n in range(30)), "".join(f"{n * 100 if n in (5, 20) else n}\n" for n in range(30))),
    ],
)
def test_a_unified_diff_is_written_as_ever(before: str, after: str) -> None:
    fixed = Fixed(before=Source.from_text(before), source=Source.from_text(after))
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "module.py", "module.py")
    expected = "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
    assert unified_diff(fixed) == expected
