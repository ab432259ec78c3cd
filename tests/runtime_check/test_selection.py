"""Fixes that harm only together are found by halving."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.runtime_check.selection import agreeing


def test_fixes_without_objection_are_all_kept() -> None:
    assert agreeing("abc", lambda fixes: "") == (["a", "b", "c"], [])


def test_of_two_that_quarrel_the_later_goes() -> None:
    def objection(fixes: Sequence[str]) -> str:
        return "b and e differ" if {"b", "e"} <= set(fixes) else ""

    assert agreeing("abcdef", objection) == (["a", "b", "c", "d", "f"], [("e", "b and e differ")])


def test_several_quarrels_are_settled_one_after_the_other() -> None:
    def objection(fixes: Sequence[str]) -> str:
        return "".join(pair for pair in ("ab", "cd") if set(pair) <= set(fixes))

    assert agreeing("abcd", objection) == (["a", "c"], [("b", "ab"), ("d", "cd")])


def test_a_single_fix_is_never_asked_about() -> None:
    assert agreeing("a", lambda fixes: "always") == (["a"], [])
    assert agreeing("ab", lambda fixes: "always")[0] == ["a"]


def test_the_search_halves() -> None:
    asked: list[int] = []

    def objection(fixes: Sequence[int]) -> str:
        asked.append(len(fixes))
        return "together" if {10, 60} <= set(fixes) else ""

    kept, dropped = agreeing(range(64), objection)
    assert (len(kept), dropped) == (63, [(60, "together")])
    assert len(asked) <= 9
