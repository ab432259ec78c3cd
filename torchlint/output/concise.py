"""One line per finding."""

from __future__ import annotations

from torchlint.output import Outcome, place, why_suppressed
from torchlint.terminal import paint, printable


def render(outcome: Outcome, color: bool) -> str:
    lines = []
    for finding, _ in outcome.shown():
        mark = paint("[*] ", color, "cyan") if outcome.is_fixable(finding) else ""
        code = paint(finding.code, color, "red", bold=True)
        lines.append(
            f"{paint(printable(place(finding)), color, bold=True)}: {code} {mark}{printable(finding.message)}"
            f"{printable(why_suppressed(finding))}\n"
        )
    return "".join(lines)
