"""All pages of rules as one HTML file, which can be searched and loads nothing from elsewhere.

Markdown comes from markdown-it, which rich brings.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from markdown_it import MarkdownIt

from torchlint import __version__
from torchlint.pages import Page

_TEMPLATE = Path(__file__).with_name("templates") / "site.html.txt"
_BLOCK = r"## {}\n.*?```python\n(.*?)```"


def render(pages: Sequence[Page]) -> str:
    """The whole file."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    links = "\n".join(map(_link, pages))
    articles = "\n".join(_article(page, markdown) for page in pages)
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(version=__version__, links=links, articles=articles)


def _link(page: Page) -> str:
    title = escape(page.summary)
    return (
        f'<li data-code="{page.code}"><a href="#{page.code}" title="{title}">'
        f"<b>{page.code}</b><span>{page.name}</span></a></li>"
    )


def _article(page: Page, markdown: MarkdownIt) -> str:
    facts = [page.severity, *(["has a fix"] if page.has_fix else []), f"since {page.since}"]
    if page.needs_torch:
        facts.append(f"needs torch {page.needs_torch}")
    body = markdown.render(page.text.replace("\n## ", "\n### "))
    fix = _fix(page)
    body = body.replace("<h3>Fix safety</h3>", f"{fix}<h3>Fix safety</h3>", 1) if page.has_fix else body
    return (
        f'<article id="{page.code}"><h2><code>{page.code}</code> {page.name}</h2>'
        f'<p class="facts">{escape(", ".join(facts))}</p>\n{body}</article>'
    )


def _fix(page: Page) -> str:
    """What the fix changes in the example, "" for a page without one."""
    found = [re.search(_BLOCK.format(section), page.text, re.DOTALL) for section in ("Example", "Use instead")]
    before, after = ([] if match is None else match[1].splitlines() for match in found)
    changed = [line for line in difflib.unified_diff(before, after, n=1, lineterm="") if line[:3] not in ("---", "+++")]
    if not changed:
        return ""
    return f"<h3>The fix</h3><pre><code>{''.join(map(_changed_line, changed))}</code></pre>\n"


def _changed_line(line: str) -> str:
    tag = {"-": "del", "+": "ins"}.get(line[:1])
    if line.startswith("@@"):
        return "<br>"
    return f"<{tag}>{escape(line)}</{tag}>" if tag else f"{escape(line)}\n"
