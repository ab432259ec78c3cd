"""A fix is only shown in a function or class that says above it where it is copied from: it would no longer be that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Finding

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

# An imperative tells what the code copies: `# Copy weights from the teacher`.
_COPIED = re.compile(
    r"(?i)#[\s*]*(?:\w+ ){0,4}(?:(?:copied|copy of|taken|borrowed)\b[^#]*\bfrom\b|copy from \S+[./]\S)"
)
_CHANGED = re.compile(r"(?i)\b(?:modif|adapt|chang|simplif|rewrit|based)")


def shown_where_copied(
    found: Sequence[tuple[cst.CSTNode, Finding]], model: Model
) -> Iterator[tuple[cst.CSTNode, Finding]]:
    """The findings of a rule and the nodes that they point at."""
    for node, finding in found:
        fix = finding.fix
        if fix is not None and fix.applicability is not Applicability.DISPLAY and _is_in_copy(node, model):
            why = "a comment says where the code is copied from, which the new one would not be"
            fix = replace(fix, applicability=Applicability.DISPLAY, why=why)
        yield node, finding if fix is finding.fix else replace(finding, fix=fix)


def _is_in_copy(node: cst.CSTNode, model: Model) -> bool:
    around = (above for above in model.ancestors(node) if isinstance(above, (cst.FunctionDef, cst.ClassDef)))
    lines = (line for above in around for line in (*above.leading_lines, *above.lines_after_decorators))
    comments = (line.comment.value for line in lines if line.comment is not None)
    return any(_COPIED.match(comment) is not None and _CHANGED.search(comment) is None for comment in comments)
