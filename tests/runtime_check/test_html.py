"""The page of a verdict: whole by itself, and nothing of the user's text becomes markup."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from torchlint.runtime_check.html import page
from torchlint.runtime_check.verdict import Verdict

from tests.runtime_check.verdicts import DIFF, FAILED, KEPT, accepted


@pytest.fixture
def verdict() -> Verdict:
    return accepted()


def test_the_page_needs_nothing_from_elsewhere_and_closes_what_it_opens(verdict: Verdict) -> None:
    text = page(verdict, {KEPT: DIFF})
    assert not re.search(r"(src|href|url\()|<script|@import|https?:", text)
    whole = re.sub(r"<meta[^>]*>", "", text.removeprefix("<!DOCTYPE html>\n"))
    root = ElementTree.fromstring(whole)
    assert {heading.text for heading in root.iter("h2")} == {
        "Time of a step",
        "Memory over steps",
        "Where the host waits, per step",
        "Fixes",
    }
    assert len(list(root.iter("svg"))) == 2


def test_text_of_the_user_stays_text(verdict: Verdict) -> None:
    root = ElementTree.fromstring(re.sub(r"<meta[^>]*>", "", page(verdict, {KEPT: DIFF}).partition("\n")[2]))
    words = "".join(root.itertext())
    for text in ("--name=<script>", "X & Y", "`losses` keeps <graphs>", "results differ: by <much>"):
        assert text in words


def test_each_fix_stands_beside_its_diff(verdict: Verdict) -> None:
    root = ElementTree.fromstring(re.sub(r"<meta[^>]*>", "", page(verdict, {KEPT: DIFF}).partition("\n")[2]))
    kept, refused = root.iter("article")
    assert [part.text for part in kept.iter("del")] == ["-    kept.append(a < b)"]
    assert [part.text for part in kept.iter("ins")] == ["+    kept.append((a < b).detach())"]
    assert [part.text for part in kept.iter("b")] == ["kept"]
    assert list(refused.iter("pre")) == []


def test_memory_is_drawn_for_every_step_of_both_versions(verdict: Verdict) -> None:
    curves = re.findall(r'<polyline[^>]* points="([^"]*)"', page(verdict, {}))
    assert [len(curve.split()) for curve in curves] == [3, 3, 3, 3]
    heights = [float(point.partition(",")[2]) for point in curves[0].split()]
    assert heights == sorted(heights, reverse=True)
    assert len({point.partition(",")[2] for point in curves[1].split()}) == 1


def test_figures_of_the_cpu_say_so_in_every_part(verdict: Verdict) -> None:
    parts = page(verdict, {}).split("<h2>")[1:4]
    assert all("no GPU was used" in part for part in parts)


def test_a_verdict_without_figures_is_a_page_too() -> None:
    text = page(FAILED, {})
    assert "&lt;lost&gt;" in text
    assert "<svg" not in text
