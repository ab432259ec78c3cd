"""The pages of all rules as one HTML file."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from torchlint.diagnostics import DIAGNOSTICS
from torchlint.pages import Page, all_pages
from torchlint.rule import all_rules
from torchlint.site import render

_EMPTY = {"meta", "input", "br", "hr", "img"}


class Reader(HTMLParser):
    """What is in the file; elements that are closed in another order than they were opened fail."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        assert self.opened == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.opened += [] if tag in _EMPTY else [tag]
        for name, value in attributes:
            if name == "id":
                self.ids.append(str(value))
            elif name == "href":
                self.links.append(str(value))
            elif name in ("src", "srcset", "action"):
                self.loaded.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def site() -> Reader:
    return Reader(render(all_pages()))


def test_every_rule_has_a_page_and_a_link_to_it(site: Reader) -> None:
    codes = [*all_rules(), *DIAGNOSTICS]
    assert [name for name in site.ids if name[0].isupper()] == codes
    assert [link[1:] for link in site.links if link.startswith("#")] == codes


def test_nothing_is_loaded_from_elsewhere(site: Reader) -> None:
    assert site.loaded == []
    assert "link" not in site.opened
    assert not re.search(r"url\(|@import|fetch\(", render(all_pages()))


def test_a_page_has_its_example_its_fix_its_evidence_and_its_references(site: Reader) -> None:
    text = "".join(site.text)
    for heading in ("Example", "Use instead", "The fix", "Fix safety", "Measured effect", "References"):
        assert text.count(heading) >= 20, heading
    assert "-    losses.append(loss)+    losses.append(loss.detach())" in text


def test_markup_in_a_page_stays_text() -> None:
    page = Page(
        "ACME01", "my-rule", "ACME", "info", "<b>x</b>", False, "1", None, [], "<script>alert(1)</script> `<i>`"
    )
    shown = render([page])
    assert "<script>alert" not in shown
    assert "&lt;script&gt;" in shown
    assert 'title="&lt;b&gt;' in shown


def test_the_command_writes_a_file_or_the_index_of_a_folder(project: Path) -> None:
    command = [sys.executable, "-m", "torchlint", "rule", "--all", "--output-format", "html", "--output"]
    subprocess.run([*command, str(project)], check=True)
    subprocess.run([*command, "rules.html"], check=True)
    assert (project / "index.html").read_text() == (project / "rules.html").read_text() == render(all_pages())
