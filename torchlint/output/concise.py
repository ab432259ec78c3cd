"""One line per finding."""

from __future__ import annotations

from torchlint.output import Outcome, place
from torchlint.terminal import paint, printable


def render(outcome: Outcome, color: bool) -> str:
    lines = []
    for finding, _ in outcome.findings():
        mark = paint("[*] ", color, "cyan") if outcome.is_fixable(finding) else ""
        code = paint(finding.code, color, "red", bold=True)
        lines.append(
            f"{paint(printable(place(finding)), color, bold=True)}: {code} {mark}{printable(finding.message)}\n"
        )
    return "".join(lines)
