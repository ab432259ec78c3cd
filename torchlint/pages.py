"""The pages of rules and of torchlint's own diagnostics, as data and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from torchlint.diagnostics import DIAGNOSTICS, UNUSED_SUPPRESSION
from torchlint.rule import all_rules, has_fixer


@dataclass(frozen=True, slots=True)
class Page:
    """`text` is Markdown with one sentence first and sections after it, `needs_torch` a version or None."""

    code: str
    name: str
    family: str
    severity: str
    summary: str
    has_fix: bool
    since: str
    needs_torch: str | None
    triggers: list[str]
    text: str


def page(code: str) -> Page:
    """Of a rule, or of a diagnostic. Raises KeyError."""
    if code in DIAGNOSTICS:
        about = DIAGNOSTICS[code]
        text, severity, has_fix = about.page, about.severity, code == UNUSED_SUPPRESSION.code
        return _page(code, about.name, severity.value, has_fix, "0.1.0", "", (), text)
    rule = all_rules()[code]
    severity, has_fix = rule.default_severity(), has_fixer(code)
    return _page(code, rule.name, severity.value, has_fix, rule.since, rule.needs_torch, rule.triggers, rule.page())


def _page(
    code: str, name: str, severity: str, has_fix: bool, since: str, torch: str, triggers: tuple[str, ...], text: str
) -> Page:
    summary, family = text.partition("\n")[0], code.rstrip("0123456789")
    return Page(code, name, family, severity, summary, has_fix, since, torch or None, list(triggers), text)


def all_pages() -> list[Page]:
    """Of all rules, then of the diagnostics of the tool itself."""
    return [page(code) for code in (*all_rules(), *DIAGNOSTICS)]


def markdown(page: Page) -> str:
    """The page under a heading, with the facts of the rule."""
    fix = ", fixable" if page.has_fix else ""
    return f"# {page.code} {page.name}\n\n{page.severity}{fix}, since {page.since}\n\n{page.text}"
