"""Takes the call that empties the cache out of the step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.tree import walk

from .._chores import taken_out

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_FREEING = re.compile(r"del\b|gc\.collect\(|torch\.cuda\.ipc_collect\(")
_WHY = "the process keeps the cached memory between steps, and where steps differ in size it may fragment"


def fix(report: Report, model: Model) -> Fix:
    if _frees(report.facts.call.node, model):
        raise NoFixError("the line above it frees what it is given, so that somebody was short of memory")
    return Fix((taken_out(report.facts, model),), Applicability.UNSAFE, _WHY)


def _frees(call: cst.CSTNode, model: Model) -> bool:
    """Whether the statement in front of a call deletes a variable, on a condition or not, or collects garbage."""
    line = model.statement(call)
    block = list(getattr(model.parent(line), "body", ()))
    at = block.index(line) if line in block else 0
    before = block[at - 1] if at else None
    if isinstance(before, cst.If):
        return any(isinstance(node, cst.Del) for node in walk(before.body))
    return before is not None and _FREEING.match(model.code(before)) is not None
