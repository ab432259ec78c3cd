"""The verdict as a comment: read by a Markdown parser, nothing of the user's text becomes markup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token
from torchlint.runtime_check.markdown import LONGEST, MARKER, comment

from tests.runtime_check.verdicts import DIFF, FAILED, KEPT, REFUSED, accepted


def tokens(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or ()


def words(text: str) -> str:
    return "".join(token.content for token in tokens(text) if token.type in ("text", "text_special", "softbreak"))


def fences(text: str) -> list[tuple[str, str]]:
    return [(token.info, token.content) for token in tokens(text) if token.type == "fence"]


def test_a_job_finds_its_own_comment() -> None:
    assert comment(accepted(), {}).startswith(f"{MARKER}\n")


def test_fixes_and_figures_are_tables() -> None:
    found = [token.type for token in tokens(comment(accepted(), {}))]
    assert found.count("table_open") == 2
    assert found.count("tr_open") == 3 + 6
    text = words(comment(accepted(), {}))
    for part in (
        "MEM01 train.py:3",
        "identical, less memory",
        "inconclusive: × 0.522 (0.211 to 1.291)",
        "no GPU was used",
        "30 steps",
    ):
        assert part in text


def test_text_of_the_user_stays_text() -> None:
    text = comment(accepted(), {KEPT: DIFF})
    assert "results differ: by <much> | `@all` #1" in words(text)
    found = {token.content for token in tokens(text) if token.type in ("html_inline", "html_block")}
    assert not any("much" in piece or "script" in piece for piece in found)


def test_nobody_is_called_and_no_issue_is_linked() -> None:
    text = comment(accepted(), {})
    table = text[: text.index("<details>")]
    assert "@<!-- -->all" in table
    assert "#<!-- -->1" in table


def test_each_fix_has_its_diff_and_no_text_ends_the_fence() -> None:
    tricky = DIFF + "+```\n+</details>\n"
    found = fences(comment(accepted(), {KEPT: tricky, REFUSED: DIFF}))
    assert [language for language, _ in found] == ["text", "diff", "diff"]
    assert [content for _, content in found[1:]] == [tricky, DIFF]


def test_what_is_too_long_for_a_comment_is_left_out_and_counted() -> None:
    verdict = accepted()
    many = tuple(replace(verdict.fixes[0], fix=replace(KEPT, line=line)) for line in range(1, 81))
    text = comment(replace(verdict, fixes=many), {fix.fix: DIFF + "+" + "x" * 1000 + "\n" for fix in many})
    assert LONGEST - 3000 < len(text) <= LONGEST
    shown = len(fences(text)) - 1
    assert 0 < shown < 80
    assert f"The diffs of {80 - shown} more fixes are left out" in words(text)


def test_a_verdict_without_figures_is_a_comment_too() -> None:
    text = comment(FAILED, {})
    assert "baseline does not run" in words(text)
    assert any("<lost>" in content for _, content in fences(text))
