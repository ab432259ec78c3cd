"""Comments that suppress what was found, at the ends of lines."""

from __future__ import annotations

import re
import tokenize
from collections import defaultdict
from collections.abc import Sequence

from torchlint.diagnostics import DIAGNOSTICS
from torchlint.filters.suppression import tokens
from torchlint.finding import Edit, Finding
from torchlint.fixing.passes import Fixed
from torchlint.source import Source

_LIST = re.compile(r"#\s*torchlint:\s*ignore\s*\[[^\]#]*[^\]#,\s]")


def add_ignores(source: Source, findings: Sequence[Finding], reason: str = "") -> Fixed:
    """The source with a comment for every finding of a rule, and what is left without one.

    Raises UnicodeEncodeError where the reason has characters that the encoding of the file lacks.
    """
    read = list(tokens(source))
    rows = sorted({token.start[0] for token in read if token.type in (tokenize.NL, tokenize.NEWLINE)})
    comments = {token.start[0]: token for token in read if token.type == tokenize.COMMENT}
    by_row: dict[int, list[Finding]] = defaultdict(list)
    remaining = []
    for finding in findings:
        row = next((row for row in rows if row >= source.line_number(finding.start)), None)
        if row is None or finding.code in DIAGNOSTICS:
            remaining.append(finding)
        else:
            by_row[row].append(finding)
    edits = []
    for row, found in by_row.items():
        edit = _edit(source, row, comments.get(row), sorted({finding.code for finding in found}), reason)
        if source.objection((edit,)) is None:
            edits.append(edit)
        else:
            remaining += found
    applied = tuple(finding for finding in findings if finding not in remaining)
    return Fixed(source, source.apply(edits) if edits else source, applied, tuple(remaining))


def _edit(source: Source, row: int, comment: tokenize.TokenInfo | None, codes: Sequence[str], reason: str) -> Edit:
    """Codes join the list of a comment that is there; it keeps its own reason."""
    start, line = source.line_starts[row - 1], source.line(row)
    listed = _LIST.search(comment.string) if comment is not None else None
    if comment is not None and listed is not None:
        end = start + comment.start[1] + listed.end()
        return Edit(end, end, "".join(f", {code}" for code in codes))
    text = f"  # torchlint: ignore[{', '.join(codes)}] {reason}".rstrip()
    return Edit(start + len(line.rstrip()), start + len(line), text)
